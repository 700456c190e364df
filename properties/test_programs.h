// Programs that several tests of this folder start from.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "properties/program.h"

namespace gatherfuzz {

// Small shapes, two ranks, both overlaps; `more` holds further lines: flags first, then faults and actions.
inline Program small_program(const std::string& recipe, const std::string& more) {
  std::string text = "gatherfuzz program v1\nset fp8_recipe " + recipe + "\n";
  if (recipe == "mxfp8") text += "set fp8_param_gather true\nset reuse_grad_buf_for_mxfp8_param_ag true\n";
  text +=
      "set overlap_param_gather true\nset overlap_grad_reduce true\nset data_parallel_size 2\n"
      "set hidden_size 32\nset ffn_hidden_size 32\nset num_attention_heads 2\nset vocab_size 32\n";
  const ParseResult parsed = parse_program(text + more);
  EXPECT_TRUE(parsed.ok()) << text << more << (parsed.errors.empty() ? "" : parsed.errors[0].message);
  return parsed.program.value_or(Program{});
}

struct CorpusFile {
  std::string name;
  Program program;
};

// All programs of a folder of the corpus, in order of name.
inline std::vector<CorpusFile> corpus_folder(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(GATHERFUZZ_SOURCE_DIR) + "/corpus/" + folder))
    if (entry.path().extension() == ".program") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<CorpusFile> files;
  for (const auto& path : paths) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    ParseResult parsed = parse_program(text.str());
    EXPECT_TRUE(parsed.ok()) << path;
    if (parsed.ok()) files.push_back({path.filename().string(), std::move(*parsed.program)});
  }
  return files;
}

}  // namespace gatherfuzz
