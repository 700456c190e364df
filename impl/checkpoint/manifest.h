// manifest.json of a checkpoint: what the files beside it must be, and what is no tensor. It is read only as
// it is written, byte for byte, and holds a checksum of itself, so that no change of it goes unnoticed.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "impl/checkpoint/error.h"

namespace gatherfuzz {

inline constexpr uint64_t kCheckpointVersion = 1;
inline constexpr std::size_t kLargestManifest = 64 * 1024;

struct FileSum {
  uint64_t bytes = 0;
  uint32_t crc32 = 0;  // as zlib's

  bool operator==(const FileSum&) const = default;
};
FileSum sum_of(std::span<const uint8_t> bytes);
// Whether a file is the one that the manifest tells of.
Checked<std::monostate> check_sum(const FileSum& expected, std::span<const uint8_t> bytes);

struct Manifest {
  uint64_t step = 0;          // steps taken
  uint64_t batch = 0;         // the next one
  uint64_t evaluations = 0;   // evaluation batches used
  uint64_t microbatches = 1;  // of the next iteration
  std::map<std::string, std::string> flags;
  std::map<std::string, FileSum> files;

  bool operator==(const Manifest&) const = default;
};

std::string write_manifest(const Manifest& manifest);
// Any text is a valid argument.
Checked<Manifest> parse_manifest(std::string_view text);

}  // namespace gatherfuzz
