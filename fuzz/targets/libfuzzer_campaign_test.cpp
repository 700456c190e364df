// `gatherfuzz fuzz --engine libfuzzer`, with the real fuzz targets beside the tool.
#include <nlohmann/json.hpp>
#include <set>

#include "fuzz/run_binary_for_tests.h"

namespace gatherfuzz {

namespace {

const std::string kFault = "drop op=copy_main_params_to_param_buffer when=replay_with_hooks_off";
const std::vector<std::string> kFlags = {"fp8_recipe=mxfp8", "fp8_param_gather=true",
                                         "reuse_grad_buf_for_mxfp8_param_ag=true", "overlap_grad_reduce=true",
                                         "overlap_param_gather=true"};

class LibFuzzerCampaignTest : public BinaryTest {
 protected:
  using Arguments = std::vector<std::string>;

  Arguments fuzz(const std::string& out, const Arguments& more,
                 const std::string& runtimes = "symbolic") const {
    Arguments arguments{"fuzz", "--engine", "libfuzzer", "--runtime", runtimes, "--out", path(out)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  std::set<std::string> files_of(const std::string& folder) const {
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(path(folder)))
      if (entry.is_regular_file()) files.insert(entry.path().filename().string());
    return files;
  }

  uint64_t programs_in_state() const {
    const std::string text = content_of(path("out/state"));
    return nlohmann::json::parse(text.substr(0, text.find('\n'))).at("programs").get<uint64_t>();
  }
  bool has_saved() const { return std::filesystem::exists(path("out/state")) && programs_in_state() > 0; }

  static std::string before_time(const std::string& text) { return text.substr(0, text.rfind(',')); }
  static std::string line_with(const std::string& word, const std::string& text) {
    const std::size_t begin = text.find(word);
    return begin == text.npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
  }
};

TEST_F(LibFuzzerCampaignTest, FindsAPlantedDefectFromNothingAtTheSameProgramEachTime) {
  Arguments how{"--runs", "3000", "--seed", "1", "--fault", kFault};
  for (const std::string& flag : kFlags) how.insert(how.end(), {"--set", flag});
  const Result first = run(fuzz("a", how)), second = run(fuzz("b", how));
  EXPECT_EQ(first.exit_code, 1) << first.out << first.err;
  for (const char* part : {"FAILURE zeroed-weights  symbolic  signature ", "reproduced 3 of 3",
                           "Last writers, latest first", "Found by libfuzzer, seed 1, program "})
    EXPECT_NE(first.err.find(part), std::string::npos) << part << "\n" << first.err;
  EXPECT_EQ(before_time(first.out), before_time(second.out));
  const auto found = [](const std::string& text) {
    const std::string line = line_with("Found by libfuzzer, seed 1, program ", text);
    return line.substr(0, line.find(" s. "));
  };
  EXPECT_EQ(before_time(found(first.err)), before_time(found(second.err)));

  const std::set<std::string> failures = files_of("a/failures");
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures, files_of("b/failures"));
  const std::string& name = *failures.begin();
  EXPECT_TRUE(name.starts_with("zeroed-weights-")) << name;
  EXPECT_LT(content_of(path("a/failures/" + name)).size(),
            content_of(path("a/failures/unshrunk/" + name)).size());
  EXPECT_EQ(run({"check", "--runtime", "symbolic", path("a/failures/" + name)}).exit_code, 1);
}

TEST_F(LibFuzzerCampaignTest, EveryProgramHasTheFlagsAndSomeRunOnTheOtherRuntime) {
  program("corpus/a.program", "set seed 4711\ntrain 2\n");
  program("corpus/faulty.program", "fault drop op=adam\ntrain 1\n");
  const Result result =
      run(fuzz("out", {"--runs", "150", "--jobs", "2", "--corpus", path("corpus"), "--set", "seq_length=16"},
               "symbolic,host"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("150 programs, ")) << result.out;
  EXPECT_NE(result.out.find("(150 on symbolic, 3 on host, "), std::string::npos) << result.out;
  EXPECT_EQ(files_of("out/libfuzzer/seeds").size(), 1u);
  ASSERT_GT(files_of("out/corpus").size(), 5u);
  bool with_seed = false;
  for (const std::string& name : files_of("out/corpus")) {
    const std::string text = content_of(path("out/corpus/" + name));
    EXPECT_NE(text.find("set seq_length 16\n"), std::string::npos) << text;
    with_seed = with_seed || text.find("set seed 4711\n") != std::string::npos;
  }
  EXPECT_TRUE(with_seed);
}

TEST_F(LibFuzzerCampaignTest, AKilledEngineIsACrashOfItsProgramAndTheCampaignGoesOn) {
  const pid_t tool = start(fuzz("out", {"--time", "120", "--keep-going"}));
  ASSERT_TRUE(eventually([&] { return has_saved(); }));
  // Between two programs nothing is told: once in a while it is killed there.
  for (int i = 0; i < 20 && content_of(path("stderr")).find("FAILURE crash") == std::string::npos; ++i) {
    kill(child_of(tool), SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  EXPECT_TRUE(
      eventually([&] { return content_of(path("stderr")).find("FAILURE crash") != std::string::npos; }));
  const uint64_t programs = programs_in_state();
  EXPECT_TRUE(eventually([&] { return programs_in_state() > programs + 20; }));
  kill(tool, SIGINT);
  const Result result = wait(tool);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_NE(result.err.find("died of signal 9 (Killed)"), std::string::npos) << result.err;
}

TEST_F(LibFuzzerCampaignTest, AfterAKillNoEngineIsLeftAndResumeGoesOn) {
  const pid_t tool = start(fuzz("out", {"--time", "60", "--jobs", "2"}));
  const pid_t engine = child_of(tool);
  ASSERT_TRUE(eventually([&] { return has_saved(); }));
  kill(tool, SIGKILL);
  wait(tool);
  EXPECT_TRUE(eventually([&] { return is_gone(engine); }));
  const uint64_t programs = programs_in_state();
  const std::set<std::string> inputs = files_of("out/libfuzzer/corpus");
  EXPECT_GT(inputs.size(), 0u);
  for (const char* file : {"out/running/engine-1.program", "out/running/engine-2.program"})
    EXPECT_NE(content_of(path(file)).find("\n# program "), std::string::npos) << file;

  const Arguments more{"--jobs", "2", "--resume", "--runs", std::to_string(programs + 100)};
  const Result result = run(fuzz("out", more));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(programs_in_state(), programs + 100);
  EXPECT_FALSE(std::filesystem::exists(path("out/running")));
  EXPECT_GE(files_of("out/libfuzzer/corpus").size(), inputs.size());
  const Result refused = run({"fuzz", "--runtime", "symbolic", "--out", path("out"), "--resume"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--engine: expected 'libfuzzer', as the campaign began with, found 'builtin'"),
            std::string::npos)
      << refused.err;
}

TEST_F(LibFuzzerCampaignTest, CtrlCEndsTheEnginesAndSavesTheState) {
  const pid_t tool = start(fuzz("out", {"--time", "60"}));
  const pid_t engine = child_of(tool);
  ASSERT_TRUE(eventually([&] { return has_saved(); }));
  kill(tool, SIGINT);
  const Result result = wait(tool);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_NE(result.out.find(" programs, "), std::string::npos) << result.out;
  EXPECT_TRUE(is_gone(engine));
}

TEST_F(LibFuzzerCampaignTest, BytesAreNoProgramsWithoutTheMutator) {
  setenv("GATHERFUZZ_WITHOUT", "mutator", 1);
  const Result result = run(fuzz("out", {"--time", "2"}));
  unsetenv("GATHERFUZZ_WITHOUT");
  EXPECT_EQ(result.exit_code, 4) << result.out << result.err;
  EXPECT_TRUE(result.out.starts_with("0 programs, ")) << result.out;
}

// Where the branches of the target alone are counted, it is the states that make inputs worth keeping.
TEST_F(LibFuzzerCampaignTest, FewInputsAreKeptWithoutTheStates) {
#ifdef GATHERFUZZ_COUNTS_ALL_BRANCHES
  GTEST_SKIP() << "the branches of all code are counted";
#endif
  const auto inputs_with = [&](const char* left_out, const std::string& out) {
    setenv("GATHERFUZZ_WITHOUT", left_out, 1);
    EXPECT_EQ(run(fuzz(out, {"--runs", "200"})).exit_code, 0);
    unsetenv("GATHERFUZZ_WITHOUT");
    return files_of(out + "/libfuzzer/corpus").size();
  };
  EXPECT_LT(2 * inputs_with("states", "without"), inputs_with("", "with"));
}

}  // namespace

}  // namespace gatherfuzz
