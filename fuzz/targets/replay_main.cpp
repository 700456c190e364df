// gatherfuzz-replay-NAME FILE|DIR...: a fuzz target on files, without an engine. In a folder, every file
// below it. Exit 0 if the target came through all of them, 2 for a bad command line or file; a failure aborts
// as in the engine.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "fuzz/exit_code.h"
#include "fuzz/files.h"
#include "fuzz/output.h"
#include "fuzz/targets/target.h"

namespace gatherfuzz {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = 1 << 20;  // what engines give at most unless told otherwise

std::vector<std::string> files_of(const std::string& path) {
  if (!is_folder(path)) return {path};
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  if (files.empty()) throw UsageError(path + ": no file is below this folder");
  return files;
}

void replay(const std::string& path) {
  print_note("Running: " + path);  // before anything can go wrong
  std::string problem;
  const std::optional<std::string> content = read_file(path, kMostBytes, problem);
  if (!content) throw UsageError(path + ": " + problem);
  if (content->size() > kMostBytes)
    throw UsageError(path + ": expected at most " + with_commas(kMostBytes) + " bytes");
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(content->data()), content->size());
}

int replay_all(const std::vector<std::string>& paths) {
  if (paths.empty()) throw UsageError("expected FILE|DIR..., the inputs to replay");
  uint64_t inputs = 0;
  for (const std::string& path : paths) {
    for (const std::string& file : files_of(path)) {
      replay(file);
      ++inputs;
    }
  }
  print_result(with_commas(inputs) + " inputs replayed");
  return kExitAsExpected;
}

}  // namespace

}  // namespace gatherfuzz

int main(int argc, char** argv) {
  using namespace gatherfuzz;
  try {
    return replay_all({argv + 1, argv + argc});
  } catch (const UsageError& error) {
    print_note(std::string(argv[0]) + ": " + error.what());
    return kExitUsage;
  } catch (const std::filesystem::filesystem_error& error) {
    print_note(std::string(argv[0]) + ": " + error.what());
    return kExitUsage;
  }
}
