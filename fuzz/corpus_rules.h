// What a folder of programs demands of its files.
//
// A name consists of lower-case letters and digits, in words joined by '-'. A program with a fault is
// NAME.fault.program, any other NAME.program. A name of 16 hexadecimal digits is the program's hash. In
// `regressions` the healthy half of NAME.fault.program stands beside it as NAME.program.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "properties/program.h"

namespace gatherfuzz {

struct FolderRules {
  bool expectation = false;  // every file says what it comes to
  bool pairs = false;        // every program with a fault has its healthy half beside it
};
// By the folder's own name: seeds, recipes and regressions are for people and tests.
FolderRules folder_rules(std::string_view folder_name);

// What is wrong with NAME, as a repair; empty if nothing.
std::string name_problem(std::string_view name);

// NAME.program or NAME.fault.program.
std::string program_file_name(const std::string& name, const Program& program);
// NAME of a path.
std::string name_of_file(const std::string& path);

// The 16 digits of its hash.
std::string hash_text(const Program& program);

// Equal for programs that do the same: comments and what is expected do not count.
uint64_t behaviour_hash(Program program);

// The program without its faults and its expectation.
Program healthy_half(Program program);

}  // namespace gatherfuzz
