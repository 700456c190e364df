// `gatherfuzz train`: checkpoints, going on from them, and the picture.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "fuzz/run_binary_for_tests.h"

namespace gatherfuzz {
namespace {

class TrainCommandTest : public BinaryTest {
 protected:
  Result train(int steps, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train", "--text",
                                      write("text", content_of(GATHERFUZZ_SOURCE_DIR "/LICENSE")), "--steps",
                                      std::to_string(steps)};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  // Everything that makes a resumed run differ if it is lost: moments, warmup of the learning rate, position.
  Result train_small(int steps, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--set", "data_parallel_size=2", "--set",       "seq_length=32",
                                      "--set", "lr_warmup_steps=4",    "--reference", "off"};
    words.insert(words.end(), more.begin(), more.end());
    return train(steps, words);
  }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }
  void expect_same_files(const std::string& a, const std::string& b) {
    for (const char* file : {"model.safetensors", "optimizer.safetensors", "manifest.json"}) {
      EXPECT_GT(content_of(path(a + "/" + file)).size(), 100u);
      EXPECT_TRUE(content_of(path(a + "/" + file)) == content_of(path(b + "/" + file))) << file;
    }
  }
};

TEST_F(TrainCommandTest, AResumedRunIsTheUninterruptedOneToTheBit) {
  const Result whole = train_small(9, {"--checkpoint", path("whole"), "--curve", path("whole.csv")});
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_NE(whole.err.find("checkpoint " + path("whole/step-00000009")), std::string::npos) << whole.err;
  ASSERT_EQ(train_small(5, {"--checkpoint", path("parts"), "--checkpoint-every", "2"}).exit_code, 0);
  for (const char* step : {"2", "4", "5"})
    EXPECT_TRUE(std::filesystem::exists(path("parts/step-0000000" + std::string(step)))) << step;

  // Flags come from the checkpoint; the latest one, or the one that is named.
  for (const auto& [from, done] : {std::pair("parts", 5), std::pair("parts/step-00000002", 2)}) {
    const Result rest = train(9, {"--resume", path(from), "--checkpoint", path("rest"), "--reference", "off",
                                  "--curve", path("rest.csv")});
    ASSERT_EQ(rest.exit_code, 0) << rest.err;
    expect_same_files("whole/step-00000009", "rest/step-00000009");
    const std::vector<std::string> all = lines_of(content_of(path("whole.csv")));
    std::vector<std::string> expected = {all[0]};
    expected.insert(expected.end(), all.begin() + 1 + done, all.end());
    EXPECT_EQ(lines_of(content_of(path("rest.csv"))), expected);
  }
}

// Nothing in a checkpoint is cut by rank: another number of them goes on, beside a reference from there.
TEST_F(TrainCommandTest, OtherRanksGoOnFromACheckpoint) {
  ASSERT_EQ(train_small(3, {"--checkpoint", path("a")}).exit_code, 0);
  const Result rest = train(6, {"--resume", path("a"), "--set", "data_parallel_size=3", "--set",
                                "num_buckets=3", "--curve", path("rest.csv")});
  ASSERT_EQ(rest.exit_code, 0) << rest.err;
  const std::vector<std::string> lines = lines_of(content_of(path("rest.csv")));
  ASSERT_EQ(lines.size(), 4u);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    int step = 0;
    float loss = 0.0f, reference = 0.0f;
    ASSERT_EQ(std::sscanf(lines[i].c_str(), "%d,%f,%f", &step, &loss, &reference), 3) << lines[i];
    EXPECT_EQ(step, static_cast<int>(i) + 3);
    EXPECT_NEAR(loss, reference, 1e-3f * reference);
  }
}

TEST_F(TrainCommandTest, WhatCannotBeResumedIsRefusedByName) {
  ASSERT_EQ(train_small(2, {"--checkpoint", path("a")}).exit_code, 0);
  const auto refused = [&](const std::vector<std::string>& words, const std::string& message, int steps = 9) {
    const Result result = train(steps, words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find(message), std::string::npos) << result.err;
  };
  refused({"--resume", path("none")}, "expected a checkpoint, or a folder with step-*, found neither");
  refused({"--resume", path("a"), "--set", "hidden_size=32"},
          "expected a checkpoint with hidden_size 32, found 64");
  refused({"--resume", path("a")}, "expected --steps of more than the 2 that the checkpoint has, found 2", 2);
  refused({"--checkpoint-every", "2"}, "expected --checkpoint DIR too");
  refused({"--checkpoint", "/proc/none"}, "--checkpoint /proc/none: expected a folder to write to: ");
  refused({"--plot", "/proc/none/a.svg"}, "--plot /proc/none: expected a folder to write to: ");
  refused({"--curve", path("a")}, "--curve " + path("a") + ": expected a file, found a folder");
  const std::string file = path("a/step-00000002/optimizer.safetensors");
  std::string content = content_of(file);
  content[content.size() / 2] ^= 1;
  std::ofstream(file, std::ios::binary) << content;
  refused({"--resume", path("a")}, "optimizer.safetensors: checksum: expected CRC32 ");
  std::filesystem::resize_file(file, 1000);
  refused({"--resume", path("a")}, "optimizer.safetensors: truncated: expected ");
}

TEST_F(TrainCommandTest, ACheckpointThatDoesNotFitLeavesTheOneBefore) {
  ASSERT_EQ(train_small(2, {"--checkpoint", path("a")}).exit_code, 0);
  before_exec_ = [] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit small{50'000, 50'000};
    setrlimit(RLIMIT_FSIZE, &small);
  };
  const Result full = train(4, {"--resume", path("a"), "--checkpoint", path("a")});
  EXPECT_EQ(full.exit_code, 4);
  EXPECT_NE(full.err.find("File too large"), std::string::npos) << full.err;
  before_exec_ = nullptr;
  EXPECT_EQ(train(4, {"--resume", path("a"), "--checkpoint", path("a")}).exit_code, 0);
}

TEST_F(TrainCommandTest, ThePlotShowsBothCurvesAndNeedsNothingElse) {
  ASSERT_EQ(train(3, {"--plot", path("loss.svg"), "--set", "data_parallel_size=1"}).exit_code, 0);
  const std::string svg = content_of(path("loss.svg"));
  EXPECT_TRUE(svg.starts_with("<svg xmlns=")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(svg.find("href"), std::string::npos);
  EXPECT_EQ(svg.find("url("), std::string::npos);
  for (const char* kind : {"line", "beside"}) {
    const std::string start = std::string("<path class=\"") + kind + "\" d=\"";
    const std::size_t at = svg.find(start);
    ASSERT_NE(at, std::string::npos) << kind;
    const std::string path =
        svg.substr(at + start.size(), svg.find('"', at + start.size()) - at - start.size());
    EXPECT_EQ(std::count(path.begin(), path.end(), 'L'), 2) << path;  // three steps
  }
  ASSERT_EQ(
      train(1, {"--plot", path("one.svg"), "--reference", "off", "--set", "data_parallel_size=1"}).exit_code,
      0);
  const std::string one = content_of(path("one.svg"));
  EXPECT_EQ(one.find("nan"), std::string::npos);
  EXPECT_EQ(one.find(">reference<"), std::string::npos);
}

}  // namespace
}  // namespace gatherfuzz
