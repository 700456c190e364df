#include "impl/checkpoint/error.h"

namespace gatherfuzz {

namespace {

constexpr std::string_view kDamages[] = {"unreadable",     "truncated", "header-length",  "header",
                                         "duplicate-name", "dtype",     "shape",          "out-of-range",
                                         "overlap",        "gap",       "missing-tensor", "extra-tensor",
                                         "version",        "size",      "checksum",       "mismatch"};
static_assert(std::size(kDamages) == static_cast<std::size_t>(Damage::mismatch) + 1);

}  // namespace

std::string_view name_of(Damage damage) {
  return kDamages[static_cast<std::size_t>(damage)];
}

std::string CheckpointError::message(std::string_view file) const {
  return std::string(file) + ": " + std::string(name_of(damage)) + ": " + text;
}

}  // namespace gatherfuzz
