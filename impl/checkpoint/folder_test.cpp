#include "impl/checkpoint/folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gatherfuzz {
namespace {

namespace fs = std::filesystem;

class CheckpointFolder : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/gatherfuzz-folder-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    parent_ = name;
  }
  void TearDown() override { fs::remove_all(parent_); }

  std::string write(uint64_t step, const std::string& content) {
    return write_checkpoint_folder(parent_, step, {{"data", content}, {"manifest", content}});
  }
  std::string read(const std::string& folder, std::string_view name) {
    const Checked<std::string> content = read_checkpoint_file(folder, name, 1 << 24);
    return value_of(content) != nullptr ? *value_of(content) : error_of(content).message(name);
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(parent_), fs::directory_iterator()));
  }

  std::string parent_;
};

TEST_F(CheckpointFolder, TheLatestIsFoundAmongOthers) {
  EXPECT_FALSE(find_checkpoint(parent_, "manifest"));
  EXPECT_FALSE(find_checkpoint(parent_ + "/none", "manifest"));
  const std::string ninth = write(9, "nine");
  const std::string tenth = write(10, "ten");
  fs::create_directory(parent_ + "/.step-00000011.tmp");
  fs::create_directory(parent_ + "/step-later");
  EXPECT_EQ(tenth, parent_ + "/step-00000010");
  EXPECT_EQ(find_checkpoint(parent_, "manifest"), tenth);
  EXPECT_EQ(find_checkpoint(ninth, "manifest"), ninth);
  EXPECT_EQ(read(tenth, "data"), "ten");
}

TEST_F(CheckpointFolder, AStepIsWrittenAgainInItsPlace) {
  write(1, "old");
  const std::string path = write(1, "new");
  EXPECT_EQ(read(path, "data"), "new");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(CheckpointFolder, FilesThatAreMissingOrTooLargeAreNamed) {
  const std::string path = write(1, "12345");
  EXPECT_EQ(read(path, "other"), "other: unreadable: No such file or directory");
  const Checked<std::string> large = read_checkpoint_file(path, "data", 4);
  ASSERT_EQ(value_of(large), nullptr);
  EXPECT_EQ(error_of(large).message("data"), "data: size: expected at most 4 bytes, found more");
}

TEST_F(CheckpointFolder, AFullDiskLeavesWhatIsThere) {
  const std::string path = write(1, "old");
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 1000;
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(write(2, std::string(5000, 'x')), CheckpointNotWritten);
  EXPECT_THROW(write(1, std::string(5000, 'x')), CheckpointNotWritten);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(entries(), 1u);
  EXPECT_EQ(find_checkpoint(parent_, "manifest"), path);
  EXPECT_EQ(read(path, "data"), "old");
}

TEST_F(CheckpointFolder, AParentThatIsAFileIsToldOf) {
  std::ofstream(parent_ + "/file") << "x";
  EXPECT_THROW(write_checkpoint_folder(parent_ + "/file", 1, {{"data", ""}}), CheckpointNotWritten);
}

// Both files of a checkpoint hold the same bytes: a mixture of two checkpoints, or half of one, would show.
TEST_F(CheckpointFolder, AKilledWriterLeavesOnlyWholeCheckpoints) {
  write(0, "0");
  for (unsigned kill_after = 0; kill_after < 20; ++kill_after) {
    const pid_t child = fork();
    if (child == 0) {
      for (uint64_t i = 1;; ++i) write(i % 3, std::string(200'000, static_cast<char>('a' + i % 26)));
    }
    usleep(500 + kill_after * 731);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (const fs::directory_entry& entry : fs::directory_iterator(parent_)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with(".")) continue;
      const std::string data = read(entry.path().string(), "data");
      EXPECT_EQ(data, read(entry.path().string(), "manifest"));
      EXPECT_TRUE(data.size() == 1 || data.size() == 200'000u) << data.size();
    }
  }
}

}  // namespace
}  // namespace gatherfuzz
