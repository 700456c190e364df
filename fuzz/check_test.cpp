// `gatherfuzz check` on files: verdicts, exit codes, what is printed.
#include <nlohmann/json.hpp>

#include "fuzz/run_binary_for_tests.h"
#include "fuzz/schema_for_tests.h"
#include "properties/verdict.h"

namespace gatherfuzz {

namespace {

// Small enough that a run takes milliseconds on both runtimes.
const std::string kSmall =
    "set hidden_size 32\nset ffn_hidden_size 32\nset vocab_size 16\nset seq_length 8\n";
const std::string kStale =
    kSmall +
    "set data_parallel_size 2\nset overlap_grad_reduce true\nset overlap_param_gather true\n"
    "fault drop op=copy_main_params_to_param_buffer iteration=2\ntrain 3\n";

using CheckTest = BinaryTest;

TEST_F(CheckTest, EveryVerdictHasItsExitCode) {
  const struct {
    std::string lines;
    int exit_code;
    std::string verdict;
  } cases[] = {
      {kSmall + "train 2\n", 0, "pass"},
      {kSmall + "train 2\nexpect refused\n", 1, "pass"},
      {kSmall + "end_loop\n", 0, "refused"},
      {kSmall + "end_loop\nexpect refused: action-order\n", 0, "refused"},
      {kSmall + "end_loop\nexpect refused: flags\n", 1, "refused"},
      {kStale, 1, "fail"},
      {kStale + "expect fail: stale-weights\n", 0, "fail"},
      {kStale + "expect fail: race\n", 1, "fail"},
      {kSmall + "set loss_scale 1\ninject_nonfinite rank=0\ntrain 1\n", 1, "vacuous"},
      {kSmall + "set loss_scale 1\ninject_nonfinite rank=0\ntrain 1\nexpect vacuous\n", 0, "vacuous"},
      {kSmall + "train 1\nexpect fail: wrong-loss\n", 3, "skipped"},
      {kSmall + "fault drop op=all_gather iteration=9\ntrain 1\n", 2, "error"},
      {"trian 1\n", 2, "error"},
  };
  for (const auto& c : cases) {
    const Result result = run({"check", "--runtime", "symbolic", program("x.program", c.lines)});
    EXPECT_EQ(result.exit_code, c.exit_code) << c.lines << result.out << result.err;
    EXPECT_TRUE(result.out.starts_with(c.verdict + " ")) << c.lines << result.out;
  }
}

TEST_F(CheckTest, TheWorstOutcomeDecidesAndAllFilesRun) {
  const std::string bad = program("a.program", "nonsense\n"), failing = program("b.program", kStale);
  const std::string good = program("c.program", kSmall + "train 1\n");
  const std::string skipped = program("d.program", kSmall + "train 1\nexpect fail: wrong-loss\n");
  EXPECT_EQ(run({"check", "--runtime", "symbolic", failing, good}).exit_code, 1);
  EXPECT_EQ(run({"check", "--runtime", "symbolic", skipped, good}).exit_code, 0);
  EXPECT_EQ(run({"check", "--runtime", "symbolic", skipped, bad}).exit_code, 2);
  const Result all = run({"check", folder_.string()});
  EXPECT_EQ(all.exit_code, 2);
  EXPECT_NE(
      all.out.find(
          "4 files, 8 runs: 3 pass, 0 refused, 2 fail, 0 vacuous, 1 skipped, 2 error; 3 not as expected"),
      std::string::npos)
      << all.out;
  EXPECT_LT(all.out.find("a.program"), all.out.find("b.program"));
  EXPECT_LT(all.out.find("b.program"), all.out.find("c.program"));
}

TEST_F(CheckTest, AFailureIsExplained) {
  const Result result = run({"check", "--runtime", "host", program("x.program", kStale + "expect pass\n")});
  for (const char* part :
       {"expected pass, found fail: stale-weights", "stale-weights, iteration 2, rank", "signature ",
        "the forward pass read weight embedding at version 0; expected version 1"})
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
}

// What nobody expects has its whole block, on standard error.
TEST_F(CheckTest, AFailureThatIsNotExpectedTellsItsStory) {
  const std::string file = program("x.program", kStale);
  const Result result = run({"check", "--runtime", "symbolic", file});
  EXPECT_EQ(result.exit_code, 1);
  for (const char* part :
       {"FAILURE stale-weights  symbolic  signature ", "reproduced 3 of 3\n", "\n  expected  ",
        "\nLast writers, latest first\n", "\nProgram (10 lines)\n", "\nFound by check. "})
    EXPECT_NE(result.err.find(part), std::string::npos) << part << "\n" << result.err;
  EXPECT_TRUE(result.err.ends_with("\nKeep:      gatherfuzz corpus add " + file +
                                   "\nReproduce: gatherfuzz check --runtime symbolic " + file + "\n"))
      << result.err;
  const Result set = run({"check", "--runtime", "symbolic", "--set", "lr=0.5", file});
  EXPECT_TRUE(
      set.err.ends_with("\nReproduce: gatherfuzz check --runtime symbolic --set lr=0.5 " + file + "\n"))
      << set.err;
  EXPECT_EQ(set.err.find("corpus add"), std::string::npos) << "the file is another program";
  const std::string expected = program("y.program", kStale + "expect fail: stale-weights\n");
  EXPECT_EQ(run({"check", "--runtime", "symbolic", expected}).err.find("FAILURE"), std::string::npos);
  EXPECT_EQ(run({"check", "--runtime", "symbolic", "--json", file}).err.find("FAILURE"), std::string::npos);
}

TEST_F(CheckTest, ReadsStandardInput) {
  const Result result =
      run({"check", "--runtime", "symbolic", "-"}, "gatherfuzz program v1\n" + kSmall + "train 1\n");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(result.out.starts_with("pass      symbolic  -  (1 step, ")) << result.out;
}

TEST_F(CheckTest, SettingsChangeEveryProgram) {
  const std::string file = program("x.program", "train 1\n");
  const Result host = run({"check", "--runtime", "symbolic", "--set", "data_parallel_size=2", "--set",
                           "use_distributed_optimizer=false", file});
  EXPECT_TRUE(host.out.starts_with("refused   symbolic  ")) << host.out;
  const Result unknown = run({"check", "--set", "dataparallel_size=2", file});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_NE(unknown.err.find("nearest: data_parallel_size"), std::string::npos) << unknown.err;
}

TEST_F(CheckTest, BadFilesAreNamedWithTheirLineAndQuickly) {
  std::filesystem::create_directory(path("empty"));
  std::string lines = "gatherfuzz program v1\n";
  for (int i = 0; i < 1'000'000; ++i) lines += "train 1\n";
  const struct {
    std::string file, message;
  } cases[] = {
      {program("typo.program", "train 1\ntrian 2\n"), "typo.program:3: expected set, delay, twin, fault"},
      {write("empty.program", ""), "empty.program:1: expected the first line"},
      {write("binary.program", std::string("\x7f"
                                           "ELF\0\xff\x01",
                                           7)),
       "binary.program:1: expected UTF-8"},
      {write("long.program", lines), "long.program:1: expected at most 65536 bytes"},
      {"/dev/zero", "/dev/zero:1: expected at most 65536 bytes"},
      {path("missing.program"), "missing.program: No such file"},
      {path("empty"), "expected *.program files below it, found none"},
  };
  const auto start = std::chrono::steady_clock::now();
  for (const auto& c : cases) {
    const Result result = run({"check", "--json", c.file});
    EXPECT_EQ(result.exit_code, 2) << c.file;
    EXPECT_NE(result.err.find(c.message), std::string::npos) << result.err;
    EXPECT_EQ(nlohmann::json::parse(result.out.substr(0, result.out.find('\n'))).at("verdict"), "error");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(CheckTest, JsonFollowsItsSchema) {
  const auto schema = nlohmann::json::parse(content_of(GATHERFUZZ_SOURCE_DIR "/ci/check.schema.json"));
  const nlohmann::json& properties = schema.at("properties");
  const auto same_names = [&](const char* field, auto& names) {
    std::size_t i = 0;
    for (const std::string_view name : names)
      EXPECT_EQ(properties.at(field).at("enum").at(i++), name) << field;
  };
  same_names("verdict", kVerdictNames);
  same_names("class", kFailureClassNames);
  same_names("reason", kRefusalReasonNames);

  program("a.program", kSmall + "train 1\nexpect pass\n");
  program("b.program", kStale);
  program("c.program", "trian\n");
  program("d.program", kSmall + "end_loop\n");
  std::istringstream out(run({"check", "--json", folder_.string()}).out);
  int objects = 0;
  for (std::string line; std::getline(out, line); ++objects) {
    const auto object = nlohmann::json::parse(line);
    EXPECT_EQ(schema_problem(object, schema), "");
  }
  EXPECT_EQ(objects, 8);
}

}  // namespace

}  // namespace gatherfuzz
