// `gatherfuzz fuzz` as a campaign: several workers, seeds, replays, what it stores and where it cannot.
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "fuzz/run_binary_for_tests.h"
#include "properties/shapes.h"

namespace gatherfuzz {

namespace {

const std::string kFault = "drop op=copy_main_params_to_param_buffer iteration=2+";

class CampaignTest : public BinaryTest {
 protected:
  using Arguments = std::vector<std::string>;

  Arguments fuzz(const std::string& out, const Arguments& more,
                 const std::string& runtimes = "symbolic") const {
    Arguments arguments{"fuzz", "--runtime", runtimes, "--out", path(out)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // All that lies below a folder, by path.
  std::map<std::string, std::string> files_of(const std::string& folder) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path(folder))) {
      if (entry.is_regular_file())
        files[std::filesystem::relative(entry.path(), path(folder)).string()] = content_of(entry.path());
    }
    return files;
  }

  static std::string before_time(const std::string& summary) { return summary.substr(0, summary.rfind(',')); }
};

TEST_F(CampaignTest, IsTheSameEachTimeWithSeveralWorkers) {
  const Arguments how{"--runs", "400", "--jobs", "3"};
  const Result first = run(fuzz("a", how, "symbolic,host")), second = run(fuzz("b", how, "symbolic,host"));
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_TRUE(first.out.starts_with("400 programs, ")) << first.out;
  EXPECT_NE(first.out.find("(400 on symbolic, 7 on host, "), std::string::npos) << first.out;
  EXPECT_EQ(before_time(first.out), before_time(second.out));
  EXPECT_GT(files_of("a/corpus").size(), 100u);
  EXPECT_EQ(files_of("a/corpus"), files_of("b/corpus"));
}

TEST_F(CampaignTest, SeveralWorkersStopAtTheFirstFailureByNumber) {
  const Arguments how{"--runs", "2000", "--fault", kFault, "--jobs", "3"};
  const Result first = run(fuzz("a", how)), second = run(fuzz("b", how));
  EXPECT_EQ(first.exit_code, 1);
  EXPECT_NE(first.out.find(" 1 failures, "), std::string::npos) << first.out;
  EXPECT_EQ(before_time(first.out), before_time(second.out));
}

TEST_F(CampaignTest, ADeadWorkerIsACrashOfItsProgramAloneAndTheCampaignGoesOn) {
  const pid_t tool = start(fuzz("out", {"--time", "3", "--jobs", "2", "--keep-going"}));
  const pid_t worker = child_of(tool);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(path("out/corpus")); }));
  kill(worker, SIGKILL);
  const Result result = wait(tool);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.err.find("FAILURE crash"), std::string::npos) << result.err;
  EXPECT_NE(result.out.find(" 1 failures of 1 kinds"), std::string::npos) << result.out;
}

TEST_F(CampaignTest, CtrlCEndsAllWorkersAndPrintsTheSummary) {
  const pid_t tool = start(fuzz("out", {"--time", "60", "--jobs", "2"}));
  const pid_t worker = child_of(tool);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(path("out/corpus")); }));
  kill(tool, SIGINT);
  const Result result = wait(tool);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_NE(result.out.find(" programs, "), std::string::npos) << result.out;
  EXPECT_TRUE(is_gone(worker));
}

TEST_F(CampaignTest, ACommitIsASeed) {
  const std::string commit = "3f2c1aa0b5d94c7e8f10213243546576879809ab";
  std::string other = commit;
  other.back() = 'c';
  const auto counts = [&](const std::string& seed) {
    return run(fuzz("out" + seed, {"--runs", "60", "--seed", seed})).out;
  };
  const std::string first = counts(commit);
  EXPECT_NE(first.find(", seed " + commit + ", "), std::string::npos) << first;
  EXPECT_EQ(before_time(first), before_time(counts(commit)));
  counts(other);
  EXPECT_NE(files_of("out" + commit + "/corpus"), files_of("out" + other + "/corpus"));
}

TEST_F(CampaignTest, NoRunsReplayTheCorpusOnEveryRuntime) {
  program("corpus/a.program", "set data_parallel_size 2\nset seq_length 8\ntrain 2\n");
  program("corpus/b.program", "set seq_length 8\ntrain 1\n");
  program("corpus/faulty.program", "fault drop op=adam\ntrain 1\n");
  const Result result = run(fuzz("out", {"--runs", "0", "--corpus", path("corpus")}, "symbolic,host"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("2 programs, 2 pass, ")) << result.out;
  EXPECT_NE(result.out.find("(2 on symbolic, 2 on host, "), std::string::npos) << result.out;
  // Each shape is told, with the programs that have it.
  for (const InterestingShape& shape : interesting_shapes())
    EXPECT_NE(result.err.find(std::string(shape.name) + " "), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("one rank 50.0%, three ranks 0.0%"), std::string::npos) << result.err;

  std::filesystem::create_directories(path("empty"));
  const Result none = run(fuzz("out", {"--runs", "0", "--corpus", path("empty")}));
  EXPECT_EQ(none.exit_code, 4);
  EXPECT_NE(none.err.find("expected programs to replay in --corpus " + path("empty") + ", found none"),
            std::string::npos)
      << none.err;
}

TEST_F(CampaignTest, ProgramsOfTheCorpusAlsoHaveTheFlagsThatAreSet) {
  program("corpus/a.program", "train 2\n");
  const Result result = run(fuzz("out", {"--runs", "0", "--corpus", path("corpus"), "--set",
                                         "data_parallel_size=3", "--set", "fp8_recipe=bf16"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto kept = files_of("out/corpus");
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_NE(kept.begin()->second.find("set data_parallel_size 3\n"), std::string::npos);
}

TEST_F(CampaignTest, WhatAnEarlierCampaignStoredIsKnownAndStaysAsItIs) {
  const Arguments how{"--runs", "300", "--fault", kFault};
  EXPECT_EQ(run(fuzz("out", how)).exit_code, 1);
  const auto before = files_of("out/failures");
  ASSERT_EQ(before.size(), 2u);
  const std::string name = before.begin()->first;
  const Result again = run(fuzz("out", how));
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(
      again.err.find("known since an earlier campaign, and left as it is: " + path("out/failures/" + name)),
      std::string::npos)
      << again.err;
  EXPECT_NE(again.err.find("FAILURE "), std::string::npos);
  EXPECT_NE(again.out.find(", 1 known before, "), std::string::npos) << again.out;
  EXPECT_EQ(files_of("out/failures"), before);

  // One that no longer fails is not overwritten either.
  const std::string healthy = program("out/failures/" + name, "train 1\n");
  const std::string healthy_text = content_of(healthy);
  const Result new_one = run(fuzz("out", how));
  EXPECT_EQ(new_one.exit_code, 1);
  EXPECT_EQ(new_one.err.find("known since"), std::string::npos) << new_one.err;
  EXPECT_EQ(content_of(healthy), healthy_text);
  const std::string second = name.substr(0, name.rfind('.')) + ".2.program";
  EXPECT_NE(new_one.err.find(path("out/failures/" + second)), std::string::npos) << new_one.err;
  EXPECT_EQ(run({"check", "--runtime", "symbolic", path("out/failures/" + second)}).exit_code, 1);
}

TEST_F(CampaignTest, AReadOnlyFolderIsRefusedBeforeAnyProgramRuns) {
  std::filesystem::create_directories(path("out"));
  std::filesystem::permissions(path("out"), std::filesystem::perms(0555));
  before_exec_ = [] {
    if (getuid() != 0) return;
    prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE);  // or root may write anywhere
  };
  const Result result = run(fuzz("out", {"--runs", "10"}));
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_EQ(result.out, "");
  EXPECT_NE(result.err.find("--out " + path("out") + ": expected a folder to write to"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("Permission denied"), std::string::npos) << result.err;
  EXPECT_TRUE(files_of("out").empty());
}

// Killed twenty times at moments of no pattern, it comes to what an unkilled campaign comes to.
TEST_F(CampaignTest, GoesOnAfterKillsAndLosesNothing) {
  const Arguments how{"--runs", "16000", "--jobs", "2", "--keep-going", "--fault", kFault};
  Arguments again = how;
  again.push_back("--resume");
  const Result whole = run(fuzz("whole", how));
  uint64_t programs = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t tool = start(fuzz("out", i == 0 ? how : again));
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(path("out/state")); }));
    const int beyond_a_save = i % 10 == 3 ? 1000 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + i * 37 % 200 + beyond_a_save));
    kill(tool, SIGKILL);
    wait(tool);
    const auto state = nlohmann::json::parse(
        content_of(path("out/state")).substr(0, content_of(path("out/state")).find('\n')));
    EXPECT_GE(state.at("programs").get<uint64_t>(), programs);
    programs = state.at("programs").get<uint64_t>();
  }
  EXPECT_GT(programs, 0u);
  const Result result = run(fuzz("out", again));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  const auto counts = [](const std::string& out) {
    return out.substr(out.find('('), out.find(", seed") - out.find('('));
  };
  EXPECT_EQ(counts(result.out), counts(whole.out));
  EXPECT_EQ(result.out.substr(0, result.out.find(" kinds")), whole.out.substr(0, whole.out.find(" kinds")));
  const auto names = [&](const std::string& folder) {
    std::set<std::string> found;
    for (const auto& [name, text] : files_of(folder)) found.insert(name);
    return found;
  };
  EXPECT_GE(names("whole/failures").size(), 4u);
  EXPECT_EQ(names("out/failures"), names("whole/failures"));
}

TEST_F(CampaignTest, AResumedCampaignMustHaveTheSameOptionsAndAnUndamagedState) {
  const auto refused = [&](const Arguments& more) {
    Arguments arguments = more;
    arguments.insert(arguments.end(), {"--runs", "100"});
    const Result result = run(fuzz("out", arguments));
    EXPECT_EQ(result.exit_code, 2) << result.out;
    return result.err;
  };
  EXPECT_NE(refused({"--resume"}).find(path("out/state") + ": No such file"), std::string::npos);
  EXPECT_EQ(run(fuzz("out", {"--runs", "100"})).exit_code, 0);
  EXPECT_NE(refused({"--resume", "--seed", "2"}).find("--seed: expected '1', as the campaign began with"),
            std::string::npos);
  for (const auto& [option, value] : std::vector<std::pair<std::string, std::string>>{
           {"--fault", kFault}, {"--set", "seq_length=8"}, {"--jobs", "2"}})
    EXPECT_NE(refused({"--resume", option, value}).find("--resume: " + option + ": expected"),
              std::string::npos)
        << option;

  const std::string text = content_of(path("out/state"));
  for (std::size_t i = 0; i < 12; ++i) {
    const std::size_t at = i * (text.size() - 1) / 11;
    std::string flipped = text;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (i % 7)));
    for (const std::string& damaged : {flipped, text.substr(0, at)}) {
      write("out/state", damaged);
      EXPECT_NE(refused({"--resume"}).find(path("out/state") + ": it is damaged"), std::string::npos) << at;
    }
  }
  write("out/state", text);
  const Result result = run(fuzz("out", {"--resume", "--runs", "150"}));
  EXPECT_TRUE(result.out.starts_with("150 programs, ")) << result.out << result.err;
  EXPECT_EQ(before_time(result.out), before_time(run(fuzz("whole", {"--runs", "150"})).out));
  EXPECT_EQ(files_of("out/corpus"), files_of("whole/corpus"));
}

// A limit on the size of files stands for the full disk: the first program that is longer cannot be written.
TEST_F(CampaignTest, AFullDiskEndsTheCampaignWithItsSummaryAndNothingHalfWritten) {
  constexpr rlim_t kMost = 800;
  // Standard error is a pipe: as a file it would be cut at the limit too, and sanitizers say much there.
  int messages[2];
  ASSERT_EQ(pipe2(messages, O_CLOEXEC), 0);
  before_exec_ = [&messages] {
    dup2(messages[1], STDERR_FILENO);
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{kMost, kMost};
    setrlimit(RLIMIT_FSIZE, &limit);
  };
  Result result = run(fuzz("out", {"--runs", "100000", "--jobs", "2"}));
  close(messages[1]);
  char buffer[4096];
  for (ssize_t n; (n = read(messages[0], buffer, sizeof buffer)) > 0;)
    result.err.append(buffer, static_cast<std::size_t>(n));
  close(messages[0]);
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_NE(result.out.find(" programs, "), std::string::npos) << result.out;
  EXPECT_NE(result.err.find("gatherfuzz: cannot write " + path("out/corpus/")), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("File too large"), std::string::npos) << result.err;
  for (const auto& [name, text] : files_of("out")) {
    EXPECT_TRUE(name.ends_with(".program") || name == "state" || name == "log.jsonl") << name;
    EXPECT_LE(text.size(), kMost);
  }
  before_exec_ = nullptr;
  if (!files_of("out").empty()) {
    EXPECT_EQ(run({"check", "--runtime", "symbolic", path("out/corpus")}).exit_code, 0);
  }
}

// Not even the failure can be written: then it is told with its program.
TEST_F(CampaignTest, AFailureThatCannotBeStoredIsPrinted) {
  std::filesystem::create_directories(path("out"));
  write("out/failures", "a file where the folder should be");
  const Result result = run(fuzz("out", {"--runs", "300", "--fault", kFault}));
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_NE(result.err.find("which could not be stored:\ngatherfuzz program v1\n"), std::string::npos)
      << result.err;
  EXPECT_NE(result.err.find("cannot write " + path("out/failures/unshrunk/")), std::string::npos)
      << result.err;
}

}  // namespace

}  // namespace gatherfuzz
