// The stored programs: readable, canonical, legal and distinct; and those for benchmarks have their figures.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "properties/bench_corpus.h"
#include "properties/plan.h"

namespace gatherfuzz {
namespace {

const std::filesystem::path kCorpus = std::filesystem::path(GATHERFUZZ_SOURCE_DIR) / "corpus";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The program files of a folder by name.
std::map<std::string, Program> programs_in(const std::string& folder) {
  std::map<std::string, Program> programs;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus / folder)) {
    if (entry.path().extension() != ".program") continue;
    const std::string name = entry.path().filename().string();
    const std::string text = read_file(entry.path());
    const ParseResult read = parse_program(text);
    EXPECT_TRUE(read.ok()) << name << ": " << (read.ok() ? "" : read.errors[0].message);
    if (!read.ok()) continue;
    EXPECT_EQ(print_program(*read.program), text) << name << " is not in canonical form";
    programs[name] = *read.program;
  }
  return programs;
}

// Programs for people say what they are, pass, and do something.
void expect_readable(const std::map<std::string, Program>& programs) {
  for (const auto& [name, program] : programs) {
    EXPECT_FALSE(program.top_comments.empty()) << name << " does not say what it is";
    ASSERT_TRUE(program.expect) << name;
    EXPECT_EQ(program.expect->verdict, Verdict::pass) << name;
    const auto refusal = refusal_before_run(program);
    EXPECT_FALSE(refusal) << name << ": " << refusal->text;
    EXPECT_TRUE(program.faults.empty()) << name;
    EXPECT_GE(plan_program(program).taken_steps, 2) << name;
  }
}

TEST(Corpus, SeedsAreReadable) {
  const std::map<std::string, Program> programs = programs_in("seeds");
  EXPECT_GE(programs.size(), 10u);
  expect_readable(programs);
  int replaying = 0;
  for (const auto& [name, program] : programs) replaying += plan_program(program).replays > 0;
  EXPECT_GE(replaying, 8);
}

TEST(Corpus, RecipesNameTheirSource) {
  const std::map<std::string, Program> programs = programs_in("recipes");
  EXPECT_GE(programs.size(), 15u);
  expect_readable(programs);
  const std::string readme = read_file(kCorpus / "recipes" / "README.md");
  for (const auto& [name, program] : programs) {
    EXPECT_EQ(program.top_comments.front().rfind(" Megatron-Bridge, src/megatron/bridge/", 0), 0u) << name;
    const bool graph = captures_full_iteration(program.flags);
    EXPECT_EQ(plan_program(program).replays > 0, graph) << name;
    EXPECT_LE(program.flags.num_microbatches, 4) << name;
    EXPECT_NE(readme.find(name), std::string::npos) << name << " is missing in README.md";
  }
}

TEST(Corpus, NoProgramIsStoredTwice) {
  std::map<uint64_t, std::string> seen;
  size_t flag_sets = 0;
  std::map<std::string, int> recipes;
  for (const char* folder : {"seeds", "recipes", "bench"}) {
    for (const auto& [name, program] : programs_in(folder)) {
      const auto [at, is_new] = seen.emplace(program_hash(program), name);
      EXPECT_TRUE(is_new) << name << " is " << at->second;
      if (std::string(folder) != "recipes") continue;
      Program only_flags;
      only_flags.flags = program.flags;
      ++recipes[print_program(only_flags)];
      ++flag_sets;
    }
  }
  EXPECT_EQ(recipes.size(), flag_sets) << "two recipes with the same flags are one";
  EXPECT_GE(seen.size(), 225u);
}

void expect_figures(const BenchFigures& figures, double steps_tolerance) {
  EXPECT_EQ(figures.programs, kBenchPrograms);
  EXPECT_EQ(figures.legal, kBenchPrograms);
  EXPECT_EQ(figures.fitting, kBenchPrograms);
  EXPECT_EQ(figures.replaying, kBenchPrograms / 2);
  EXPECT_EQ(figures.evaluating, kBenchPrograms / 4);
  EXPECT_GE(figures.mxfp8, kBenchPrograms * 65 / 100);
  EXPECT_NEAR(figures.mean_steps, 12.0, steps_tolerance);
}

TEST(Corpus, BenchProgramsHaveTheirFigures) {
  const std::map<std::string, Program> stored = programs_in("bench");
  ASSERT_EQ(stored.size(), 200u);
  EXPECT_EQ(stored.begin()->first, "bench-001.program");
  EXPECT_EQ(stored.rbegin()->first, "bench-200.program");
  std::vector<Program> programs;
  for (const auto& [name, program] : stored) programs.push_back(program);
  expect_figures(bench_figures(programs), 0.5);
}

// So that the folder can be written anew whenever the generator has changed. The mean of a fresh sample lies
// within four of its standard errors of what the generator draws.
TEST(Corpus, WrittenAnewBenchProgramsWouldHaveThemToo) {
  const BenchFigures figures = bench_figures(bench_programs());
  expect_figures(figures, 0.5 + 4 * figures.steps_deviation / std::sqrt(figures.programs));
  EXPECT_LT(figures.steps_deviation, 6.0) << "else the bound above says nothing";
}

TEST(Corpus, FiguresCountWhatTheyName) {
  Program program;
  program.actions.resize(2);
  program.actions[0].count = 4;
  program.actions[1].kind = ActionKind::evaluate;
  program.actions[1].count = 1;
  Program replaying = program;
  replaying.flags.cuda_graph_impl = CudaGraphImpl::full_iteration;
  Program refused = program;
  refused.flags.cuda_graph_impl = CudaGraphImpl::local;
  const BenchFigures figures = bench_figures({program, replaying, refused});
  EXPECT_EQ(figures.programs, 3);
  EXPECT_EQ(figures.legal, 2);
  EXPECT_EQ(figures.replaying, 1);
  EXPECT_EQ(figures.evaluating, 3);
  EXPECT_EQ(figures.mxfp8, 0);
  EXPECT_EQ(figures.fitting, 0);
  EXPECT_EQ(figures.mean_steps, 4.0);
}

}  // namespace
}  // namespace gatherfuzz
