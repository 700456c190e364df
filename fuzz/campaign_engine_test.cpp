// `gatherfuzz fuzz --engine`, with scripts in the place of fuzz targets. With the real ones:
// targets/libfuzzer_campaign_test.cpp.
#include <set>

#include "fuzz/run_binary_for_tests.h"

namespace gatherfuzz {

namespace {

class EngineTest : public BinaryTest {
 protected:
  // A binary in a folder where it finds these lines of bash as the fuzz target of `symbolic`. They may say a
  // message: `say vVERSION`.
  void use_target(const std::string& lines) {
    std::filesystem::copy_file(GATHERFUZZ_BINARY, path("gatherfuzz"));
    binary_ = path("gatherfuzz");
    if (lines.empty()) return;
    write("program_symbolic_fuzzer",
          "#!/usr/bin/env bash\nsay() { env printf \"$1\" >&\"$GATHERFUZZ_REPORT\"; }\n" + lines + "\n");
    std::filesystem::permissions(path("program_symbolic_fuzzer"), std::filesystem::perms(0755));
  }
  std::string version() { return "v$(\"" + path("gatherfuzz") + "\" --version | head -n 1)"; }

  Result fuzz(const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"fuzz",      "--engine", "libfuzzer", "--runs",   "3",
                                       "--runtime", "symbolic", "--out",     path("out")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }

  static void expect_words(const Result& result, int exit_code, const std::vector<std::string>& words) {
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    for (const std::string& word : words)
      EXPECT_NE(result.err.find(word), std::string::npos) << word << "\nin\n" << result.err;
  }
};

TEST_F(EngineTest, AnUnknownOneIsRefused) {
  expect_words(run({"fuzz", "--engine", "libfuzer"}), 2,
               {"--engine: expected builtin or libfuzzer, found 'libfuzer'; nearest: libfuzzer"});
}

TEST_F(EngineTest, WithoutFuzzTargetsLibFuzzerIsRefusedBeforeAnythingIsWritten) {
  use_target("");
  expect_words(
      fuzz({}), 2,
      {"--engine libfuzzer: expected the fuzz target " + path("program_symbolic_fuzzer") + ", found none",
       "cmake --preset fuzz && cmake --build --preset fuzz"});
  EXPECT_FALSE(std::filesystem::exists(path("out")));
}

TEST_F(EngineTest, LibFuzzerReplaysNothing) {
  expect_words(run({"fuzz", "--engine", "libfuzzer", "--runs", "0", "--corpus", path("")}), 2,
               {"--runs 0 replays a corpus, without an engine"});
}

TEST_F(EngineTest, ATargetThatEndsAtOnceEndsTheCampaignWithItsLastWords) {
  use_target("echo 'no such flag' >&2\nexit 7");
  const Result result = fuzz({});
  expect_words(result, 4,
               {"ended 5 times without having run a program", "exited with status 7", "no such flag"});
  EXPECT_TRUE(result.out.starts_with("0 programs, ")) << result.out;
}

TEST_F(EngineTest, ATargetOfAnotherBuildIsRefused) {
  use_target("say 'vgatherfuzz 0.0.1'\nsleep 60");
  expect_words(fuzz({}), 2,
               {"expected a fuzz target of this build, gatherfuzz ", "found gatherfuzz 0.0.1 in "});
}

TEST_F(EngineTest, AProgramOfWhichTheEngineDiesIsACrashAndTheCampaignGoesOn) {
  use_target("say \"" + version() + "\"\nsay 'pgatherfuzz program v1\\ntrain 1\\n'\nkill -SEGV $$");
  const Result result = fuzz({"--keep-going"});
  expect_words(result, 1,
               {"FAILURE crash  symbolic", "reproduced 0 of 3", "died of signal 11", "  train 1\n",
                "Found by libfuzzer, seed 1, program 1, "});
  EXPECT_TRUE(result.out.starts_with("3 programs, 0 pass, 0 refused, 0 vacuous, 3 failures of 1 kinds"))
      << result.out;
}

TEST_F(EngineTest, AProgramThatTakesTooLongIsATimeout) {
  use_target("say \"" + version() + "\"\nsay 'pgatherfuzz program v1\\ntrain 1\\n'\nkill -PROF $$");
  expect_words(fuzz({}), 1, {"FAILURE timeout  symbolic", "too much processor time"});
}

TEST_F(EngineTest, TheTargetIsToldWhatWasAskedForAndEachStartHasAnotherSeed) {
  setenv("GATHERFUZZ_FAULT", "drop op=adam", 1);  // of no concern to the campaign
  use_target("echo \"$GATHERFUZZ_FAULT|$GATHERFUZZ_SET|$*\" >&2");
  fuzz({"--set", "data_parallel_size=3", "--set", "fp8_recipe=bf16"});
  unsetenv("GATHERFUZZ_FAULT");
  std::istringstream log(content_of(path("out/libfuzzer/job-1.log")));
  std::set<std::string> lines;
  for (std::string line; std::getline(log, line);) {
    EXPECT_TRUE(line.starts_with("|data_parallel_size=3 fp8_recipe=bf16|-seed=")) << line;
    EXPECT_NE(line.find(" -reload=0 "), std::string::npos) << line;
    lines.insert(line);
  }
  EXPECT_EQ(lines.size(), 5u);
}

TEST_F(EngineTest, OnlyKnownPartsAreLeftOut) {
  setenv("GATHERFUZZ_WITHOUT", "stats", 1);
  expect_words(run({"fuzz", "--runs", "1", "--out", path("out")}), 2,
               {"GATHERFUZZ_WITHOUT: expected mutator or states, found 'stats'; nearest: states"});
  setenv("GATHERFUZZ_WITHOUT", "mutator", 1);
  expect_words(run({"fuzz", "--runs", "1", "--out", path("out")}), 2,
               {"mutator is a part of --engine libfuzzer"});
  setenv("GATHERFUZZ_WITHOUT", "states", 1);
  const Result result = run({"fuzz", "--runs", "20", "--runtime", "symbolic", "--out", path("out")});
  unsetenv("GATHERFUZZ_WITHOUT");
  EXPECT_NE(result.out.find(", 0 programs kept, "), std::string::npos) << result.out << result.err;
  EXPECT_EQ(result.out.find(", 0 states, "), std::string::npos) << result.out;
  EXPECT_FALSE(std::filesystem::exists(path("out/corpus")));
}

}  // namespace

}  // namespace gatherfuzz
