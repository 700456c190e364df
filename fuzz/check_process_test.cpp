// `gatherfuzz check` and its worker process: interrupted, killed, and with nowhere to write to.
#include "fuzz/run_binary_for_tests.h"

namespace gatherfuzz {

namespace {

const std::string kShort = "set vocab_size 16\nset seq_length 8\ntrain 1\n";
// Runs until its budget of ops is used up: many seconds.
const std::string kLong = "set data_parallel_size 8\nset num_layers 16\ntrain 1000\n";

class CheckProcessTest : public BinaryTest {
 protected:
  // Starts a check of the files and waits until its worker runs the long one.
  void start_check(const std::vector<std::string>& files) {
    std::vector<std::string> arguments{"check", "--runtime", "host"};
    arguments.insert(arguments.end(), files.begin(), files.end());
    tool_ = start(arguments);
    worker_ = child_of(tool_);
    ASSERT_NE(worker_, 0);
    ASSERT_TRUE(eventually([&] { return !content_of(path("stdout")).empty(); }));
  }

  pid_t tool_ = 0;
  pid_t worker_ = 0;
};

TEST_F(CheckProcessTest, CtrlCStopsTheWorkerAndExits130) {
  start_check({program("a.program", kShort), program("b.program", kLong)});
  kill(tool_, SIGINT);
  const Result result = wait(tool_);
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_TRUE(is_gone(worker_));
  EXPECT_EQ(result.out.find("crash"), std::string::npos) << result.out;
}

TEST_F(CheckProcessTest, ADeadWorkerIsACrashOfItsProgramAlone) {
  start_check({program("a.program", kShort), program("b.program", kLong), program("c.program", kShort)});
  kill(worker_, SIGKILL);
  const Result result = wait(tool_);
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_NE(result.out.find("b.program  crash"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("the worker process died of signal 9 (Killed)"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("3 files, 3 runs: 2 pass, 0 refused, 1 fail"), std::string::npos) << result.out;
}

TEST_F(CheckProcessTest, TheWorkerEndsWithItsOwner) {
  start_check({program("a.program", kShort), program("b.program", kLong)});
  kill(tool_, SIGKILL);
  wait(tool_);
  EXPECT_TRUE(eventually([&] { return is_gone(worker_); }));
}

TEST_F(CheckProcessTest, AFullDiskIsAnInternalError) {
  const Result result =
      run({"check", "--runtime", "symbolic", program("a.program", kShort)}, "", "/dev/full");
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_NE(result.err.find("cannot write results to standard output: No space left"), std::string::npos)
      << result.err;
  EXPECT_EQ(run({"--version"}, "", "/dev/full").exit_code, 4);
}

}  // namespace

}  // namespace gatherfuzz
