// What a reader of checkpoint files answers instead of a value: the kind of damage, and for people what was
// expected and what was found.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace gatherfuzz {

enum class Damage : uint8_t {
  unreadable,      // the file is not there, or cannot be read
  truncated,       // it ends too early
  header_length,   // a header longer than any that is written
  header,          // a header or manifest that is not what it must be
  duplicate_name,  // one name twice
  dtype,
  shape,
  out_of_range,  // data outside of the file
  overlap,       // two tensors share bytes
  gap,           // bytes that belong to no tensor
  missing_tensor,
  extra_tensor,
  version,
  size,
  checksum,
  mismatch,  // sound, but of another model
};
std::string_view name_of(Damage damage);

struct CheckpointError {
  Damage damage = Damage::header;
  std::string text;  // "expected ..., found ..."

  // "model.safetensors: truncated: expected 120 bytes of header, found 7".
  std::string message(std::string_view file) const;
};

template <class T>
using Checked = std::variant<T, CheckpointError>;

// The value, or null if there is an error instead.
template <class T>
const T* value_of(const Checked<T>& checked) {
  return std::get_if<T>(&checked);
}
template <class T>
const CheckpointError& error_of(const Checked<T>& checked) {
  return std::get<CheckpointError>(checked);
}

}  // namespace gatherfuzz
