// Program files as the commands read them: their text and what it says.
#pragma once

#include <string>
#include <vector>

#include "properties/program.h"

namespace gatherfuzz {

struct ProgramFile {
  std::string path;
  std::string text;
  Program program;
};

// A file, or "-" for standard input. Throws UsageError with file, line and what was expected.
ProgramFile read_program_file(const std::string& path);

// All *.program files below a folder, sorted by path.
struct ProgramFolder {
  std::vector<ProgramFile> files;
  std::vector<std::string> unreadable;  // what a file is that is none: "x.program:3: expected ..."
};
// Throws UsageError if the folder cannot be read.
ProgramFolder read_program_folder(const std::string& folder);

}  // namespace gatherfuzz
