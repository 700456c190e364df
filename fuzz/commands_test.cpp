// The other commands, and command lines that are wrong.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "fuzz/run_binary_for_tests.h"
#include "properties/action_pairs.h"

namespace gatherfuzz {

namespace {

using CommandsTest = BinaryTest;

TEST_F(CommandsTest, VersionAndHelp) {
  const Result version = run({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_TRUE(version.out.starts_with("gatherfuzz 0.1.0 (")) << version.out;
  EXPECT_NE(version.out.find("runtimes: symbolic, host\n"), std::string::npos);
  const auto part = [&](const std::string& name) {
    const std::size_t at = version.out.find("\n" + name + ": ");
    EXPECT_NE(at, std::string::npos) << name << " in " << version.out;
    const std::size_t begin = at + name.size() + 3;
    return at == std::string::npos ? "" : version.out.substr(begin, version.out.find('\n', begin) - begin);
  };
  const std::string first = version.out.substr(0, version.out.find('\n'));
  for (const char* name : {"compiler", "build type"})
    EXPECT_NE(first.find(part(name)), std::string::npos) << first;
  EXPECT_NE(part("commit"), "");
#ifdef GATHERFUZZ_CUDA
  EXPECT_TRUE(part("cuda").starts_with("compiled with " GATHERFUZZ_CUDA ", runtime " GATHERFUZZ_CUDA))
      << version.out;
  EXPECT_TRUE(part("nccl").starts_with("compiled with 2.")) << version.out;
  EXPECT_NE(part("driver"), "");
#else
  EXPECT_EQ(part("cuda"), "not in this build");
  EXPECT_EQ(part("nccl"), "not in this build");
#endif
  for (const char* command : {"check", "train", "fuzz", "shrink", "corpus", "bench"}) {
    const Result help = run({command, "--help"});
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_NE(help.out.find(std::string("Example: gatherfuzz ") + command), std::string::npos) << help.out;
  }
}

TEST_F(CommandsTest, WrongCommandLinesExit2AndSayWhatWasExpected) {
  const std::string file = program("x.program", "train 1\n");
  const struct {
    std::vector<std::string> arguments;
    std::string message;
  } cases[] = {
      {{}, "expected a command: check, train, fuzz, shrink, corpus or bench"},
      {{"chek", file}, "found 'chek'; nearest: check"},
      {{"check"}, "FILE is required"},
      {{"check", file, "--runtme=host"}, "nearest: --runtime"},
      {{"check", file, "--runtime", "hots"}, "expected symbolic or host, found 'hots'; nearest: host"},
      {{"check", file, "--set", "lr"}, "--set: expected name=value"},
      {{"train", "--text", file, "--steps", "1001"}, "not in range"},
      {{"train", "--text", file, "--checks", "onn"},
       "--checks: expected on or off, found 'onn'; nearest: on"},
      {{"train", "--text", file, "--runtime", "symbolic"}, "expected host"},
      {{"train", "--text", file, "--set", "vocab_size=128"}, "at least 256"},
      {{"train", "--text", file, "--set", "use_distributed_optimizer=false"}, "refused: "},
      {{"train", "--text", file}, "expected 65 to"},
      {{"train", "--text", path("missing")}, "No such file"},
      {{"fuzz", "--time", "soon"}, "expected a duration"},
      {{"fuzz", "--fault", "dorp op=adam"}, "nearest: drop"},
      {{"fuzz", "--set", "fp8_param_gather=true", "--set", "fp8_recipe=bf16"},
       "no accepted flag set is like this"},
      {{"fuzz", "--corpus", path("missing")}, "No such file"},
      {{"fuzz", "--seed", "0123456789abcdef0123456789abcdef0123456"}, "--seed: expected a number below 2^64"},
      {{"fuzz", "--seed", "0123456789abcdef0123456789abcdef0123456g"}, "a commit of 40 hexadecimal digits"},
      {{"fuzz", "--jobs", "0"}, "--jobs: Value 0 not in range 1 to 256"},
      {{"fuzz", "--runs", "0"}, "--runs 0 replays a corpus: expected --corpus DIR"},
      {{"fuzz", "--out", file}, "--out " + file + ": expected a folder to write to"},
      {{"shrink", path("missing")}, "No such file"},
      {{"shrink", file, "--runtime", "symbolic,host"}, "expected one runtime, found 'symbolic,host'"},
      {{"corpus", "check", path("missing")}, "No such file"},
      {{"corpus", "add", file, "--dir", path("empty")}, "expected --name NAME"},
      {{"bench", "--corpus", path("missing")}, "No such file"},
  };
  for (const auto& c : cases) {
    const Result result = run(c.arguments);
    EXPECT_EQ(result.exit_code, 2) << c.message << result.err;
    EXPECT_NE(result.err.find(c.message), std::string::npos) << c.message << "\nfound\n" << result.err;
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(CommandsTest, TrainingFollowsTheReferenceAndLearns) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "the quick brown fox jumps over the lazy dog. ";
  const Result result =
      run({"train", "--text", write("text", text), "--steps", "25", "--curve", path("curve.csv"), "--set",
           "data_parallel_size=2", "--set", "seq_length=32", "--set", "lr=0.01"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  float loss = 0.0f, unigram = 0.0f, share = -1.0f;
  ASSERT_EQ(std::sscanf(result.out.c_str(), "final loss %f nats, unigram %f nats, worst share of bound %f",
                        &loss, &unigram, &share),
            3)
      << result.out;
  EXPECT_NEAR(unigram, 3.04f, 0.1f);
  EXPECT_LE(share, 1.0f);
  EXPECT_NE(result.err.find("step 20/25  loss "), std::string::npos) << result.err;

  std::istringstream curve(content_of(path("curve.csv")));
  std::string line;
  std::getline(curve, line);
  EXPECT_EQ(line, "step,loss,reference_loss");
  float first = 0.0f, found = 0.0f, reference = 0.0f;
  int step = 0, steps = 0;
  while (std::getline(curve, line)) {
    ASSERT_EQ(std::sscanf(line.c_str(), "%d,%f,%f", &step, &found, &reference), 3) << line;
    // Both take the same operations in the same order, so their weights stay equal to the bit; only the mean
    // over two ranks is taken in FP32 here and in double there: a sum, a scaling, a rounding, and the print.
    EXPECT_NEAR(found, reference, 4 * 0x1p-24f * reference) << line;
    if (++steps == 1) first = found;
  }
  EXPECT_EQ(steps, 25);
  EXPECT_LT(found, first - 1.0f);
}

TEST_F(CommandsTest, TrainingWithoutChecksTakesTheSameSteps) {
  const std::string text = write("text", content_of(GATHERFUZZ_SOURCE_DIR "/LICENSE"));
  const auto curve = [&](const char* checks) {
    EXPECT_EQ(run({"train", "--text", text, "--steps", "5", "--reference", "off", "--checks", checks,
                   "--curve", path("curve.csv")})
                  .exit_code,
              0);
    return content_of(path("curve.csv"));
  };
  const std::string checked = curve("on");
  EXPECT_EQ(checked, curve("off"));
  EXPECT_EQ(std::count(checked.begin(), checked.end(), '\n'), 6);
}

TEST_F(CommandsTest, ACurveThatCannotBeWrittenIsRefusedAndLeavesNothingBehind) {
  const std::string text = write("text", content_of(GATHERFUZZ_SOURCE_DIR "/LICENSE"));
  std::filesystem::create_directories(path("curve.csv"));  // a folder where the file should go
  const Result result =
      run({"train", "--text", text, "--steps", "1", "--reference", "off", "--curve", path("curve.csv")});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--curve " + path("curve.csv") + ": expected a file, found a folder"),
            std::string::npos)
      << result.err;
  EXPECT_FALSE(std::filesystem::exists(path("curve.csv.tmp")));
}

TEST_F(CommandsTest, ACampaignFindsAPlantedFaultAndKeepsTheProgram) {
  const Result result =
      run({"fuzz", "--runtime", "symbolic", "--runs", "2000", "--seed", "7", "--out", path("out"), "--fault",
           "drop op=copy_main_params_to_param_buffer iteration=2+"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(("\n" + result.err).find("\nFAILURE "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("reproduced 3 of 3"), std::string::npos) << result.err;
  EXPECT_NE(result.out.find(" 1 failures, "), std::string::npos) << result.out;
  const std::string before = "Reproduce: gatherfuzz check --runtime symbolic ";
  const std::size_t at = result.err.find(before);
  ASSERT_NE(at, std::string::npos);
  const std::string file =
      result.err.substr(at + before.size(), result.err.find('\n', at) - at - before.size());
  EXPECT_EQ(run({"check", "--runtime", "symbolic", file}).exit_code, 1);
  // Kept, it says how it was found and when it was added, and holds.
  EXPECT_EQ(run({"corpus", "add", file, "--dir", path("kept")}).exit_code, 0);
  EXPECT_EQ(run({"check", path("kept")}).exit_code, 0);
  std::string kept;
  for (const auto& entry : std::filesystem::directory_iterator(path("kept")))
    kept += content_of(entry.path());
  for (const char* part :
       {"# Found by builtin, seed 7, program ", "# Added 20", "\nexpect fail: ", "\nexpect pass\n"})
    EXPECT_NE(kept.find(part), std::string::npos) << part << "\n" << kept;
}

TEST_F(CommandsTest, ACampaignIsTheSameEachTime) {
  const auto counts = [&](const char* seed) {
    const Result result =
        run({"fuzz", "--runtime", "symbolic", "--runs", "200", "--seed", seed, "--out", path("out")});
    return result.out.substr(0, result.out.find('('));
  };
  const std::string first = counts("1");
  EXPECT_NE(first.find(" programs, "), std::string::npos) << first;
  EXPECT_FALSE(first.starts_with("0 programs")) << first;
  EXPECT_EQ(first, counts("1"));
}

// Every kind of failure is told once and kept, as found and as it shrank; nothing goes to a corpus.
TEST_F(CommandsTest, ACampaignGoesOnAndTellsEachKindOnce) {
  const Result result =
      run({"fuzz", "--runtime", "symbolic", "--runs", "300", "--keep-going", "--out", path("out"), "--fault",
           "drop op=copy_main_params_to_param_buffer iteration=2+"});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  std::set<std::string> told;
  std::istringstream lines(result.err);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("FAILURE ")) continue;
    EXPECT_TRUE(told.insert(line).second) << line;
  }
  EXPECT_GE(told.size(), 2u);
  EXPECT_NE(result.out.find(" failures of " + std::to_string(told.size()) + " kinds, "), std::string::npos)
      << result.out;
  std::size_t kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path("out/failures"))) {
    if (entry.is_directory()) continue;
    ++kept;
    const std::filesystem::path unshrunk = entry.path().parent_path() / "unshrunk" / entry.path().filename();
    const auto size = [](const std::filesystem::path& p) { return std::filesystem::file_size(p); };
    EXPECT_LT(size(entry.path()), size(unshrunk));
    EXPECT_EQ(run({"check", "--runtime", "symbolic", unshrunk.string()}).exit_code, 1);
  }
  EXPECT_EQ(kept, told.size());
  EXPECT_FALSE(std::filesystem::exists(path("out/corpus")));
}

TEST_F(CommandsTest, ACampaignKeepsWhatReachesSomethingNewAndBeginsWithIt) {
  const std::string out = run({"fuzz", "--runtime", "symbolic", "--runs", "100", "--out", path("out")}).out;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path("out/corpus")))
    files += entry.is_regular_file();
  EXPECT_GT(files, 10u);
  EXPECT_NE(out.find(", " + std::to_string(files) + " programs kept, "), std::string::npos) << out;
  EXPECT_NE(out.find(" of " + std::to_string(legal_action_pairs().size()) + " action pairs, "),
            std::string::npos)
      << out;
  program("out/corpus/bad.program", "trian 1\n");
  program("out/corpus/faulty.program", "fault drop op=adam\ntrain 1\n");
  const Result again = run({"fuzz", "--runtime", "symbolic", "--runs", std::to_string(files), "--corpus",
                            path("out/corpus"), "--out", path("again")});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_NE(again.err.find("left out: " + path("out/corpus/bad.program")), std::string::npos) << again.err;
  EXPECT_EQ(again.err.find("faulty"), std::string::npos);
}

TEST_F(CommandsTest, EveryProgramOfACampaignHasTheFlagsThatAreSet) {
  const Result result = run({"fuzz", "--runtime", "symbolic", "--runs", "60", "--set", "data_parallel_size=3",
                             "--set", "fp8_recipe=fp32", "--out", path("out")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const auto& entry : std::filesystem::directory_iterator(path("out/corpus"))) {
    const std::string text = content_of(entry.path());
    EXPECT_NE(text.find("set data_parallel_size 3\n"), std::string::npos) << text;
    EXPECT_NE(text.find("set fp8_recipe fp32\n"), std::string::npos) << text;
  }
}

TEST_F(CommandsTest, ShrinkKeepsTheFailureAndLittleElse) {
  const std::string file = program("x.program",
                                   "set overlap_grad_reduce true\nset overlap_param_gather true\n"
                                   "set data_parallel_size 3\nset hidden_size 32\nset schedule reverse\n"
                                   "fault drop op=all_gather iteration=2+\n"
                                   "train 2\nevaluate 1\nskip_iteration\ntrain 4\n");
  const Result result = run({"shrink", file});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err.find(" of 11 lines left after "), std::string::npos) << result.err;
  const std::string small = content_of(path("x.shrunk.program"));
  EXPECT_EQ(small,
            "gatherfuzz program v1\nset overlap_param_gather true\nset overlap_grad_reduce true\n"
            "set data_parallel_size 2\nfault drop op=all_gather iteration=2+\ntrain 2\n");
  const Result again = run({"shrink", "-"}, small);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(again.out, small);
  const Result healthy = run({"shrink", program("y.program", "train 1\n")});
  EXPECT_EQ(healthy.exit_code, 1);
  EXPECT_NE(healthy.err.find("expected a program that fails on symbolic, found pass"), std::string::npos)
      << healthy.err;
}

TEST_F(CommandsTest, BenchPrintsItsFigures) {
  program("bench/a.program", "set seq_length 8\ntrain 2\n");
  const Result result = run({"bench", "--json", "--corpus", path("bench"), "--seconds", "0.05"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  std::istringstream out(result.out);
  const std::map<std::string, std::string> peers = {
      {"symbolic_ops_per_second", ""},
      {"symbolic_fine_programs_per_second", ""},
      {"symbolic_programs_per_second", "symbolic_fine_programs_per_second"},
      {"host_programs_per_second", "symbolic_programs_per_second"},
      {"ops_per_program", ""},
      {"symbolic_coarse_ops_per_second", "symbolic_ops_per_second"},
      {"symbolic_programs_with_twins_per_second", "symbolic_programs_per_second"},
      {"host_programs_with_twins_per_second", "host_programs_per_second"},
      {"mutants_per_second", ""}};
  std::map<std::string, double> values;
  for (std::string line; std::getline(out, line);) {
    const auto figure = nlohmann::json::parse(line);
    EXPECT_EQ(figure.size(), 5u) << line;
    const std::string name = figure.at("name");
    ASSERT_TRUE(peers.contains(name)) << line;
    EXPECT_TRUE(values.emplace(name, figure.at("value")).second) << line;
    EXPECT_GT(values[name], 0.0) << line;
    EXPECT_TRUE(figure.at("unit").is_string()) << line;
    const std::string& peer = peers.at(name);
    EXPECT_EQ(figure.at("peer"), peer.empty() ? nlohmann::json() : nlohmann::json(peer)) << line;
    if (peer.empty()) {
      EXPECT_TRUE(figure.at("ratio").is_null()) << line;
    } else {
      EXPECT_NEAR(figure.at("ratio").get<double>() / (values[name] / values.at(peer)), 1.0, 1e-9) << line;
    }
  }
  EXPECT_EQ(values.size(), peers.size());
}

}  // namespace

}  // namespace gatherfuzz
