// Checkpoints on disk: PARENT/step-00000010/ with a few files. A folder has its name only when all of it is
// on the disk, so that a full disk or a killed writer leaves the checkpoints that are there as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "impl/checkpoint/error.h"

namespace gatherfuzz {

struct CheckpointNotWritten : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct NamedFile {
  std::string_view name;
  std::string_view content;
};

// Writes PARENT/step-STEP, in place of one that is there; returns its path. Makes PARENT where it is missing.
// Throws CheckpointNotWritten.
std::string write_checkpoint_folder(const std::string& parent, uint64_t step,
                                    const std::vector<NamedFile>& files);

// A checkpoint's folder itself, or the one of the latest step in its parent. Nothing if there is none.
std::optional<std::string> find_checkpoint(const std::string& path, std::string_view manifest_name);

// A file of at most `limit` bytes.
Checked<std::string> read_checkpoint_file(const std::string& folder, std::string_view name,
                                          std::size_t limit);

}  // namespace gatherfuzz
