// Runs the built binary as people do: arguments, standard input, both outputs, exit code.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace gatherfuzz {

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A test with a folder of its own.
class BinaryTest : public ::testing::Test {
 protected:
  struct Result {
    int exit_code = -1;  // of an exit; 128 + signal otherwise
    std::string out, err;
  };

  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "gatherfuzz-cli-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return path(name);
  }
  // A program of these lines after the first one.
  std::string program(const std::string& name, const std::string& lines) const {
    return write(name, "gatherfuzz program v1\n" + lines);
  }

  // Starts the binary with outputs in files of the test's folder, or standard output in `out`.
  pid_t start(const std::vector<std::string>& arguments, const std::string& input = "",
              const std::string& out = "") {
    const std::string in_path = write("stdin", input);
    const std::string out_path = out.empty() ? path("stdout") : out, err_path = path("stderr");
    std::vector<std::string> words = arguments;
    words.insert(words.begin(), binary_);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t process = fork();
    if (process == 0) {
      dup2(open(in_path.c_str(), O_RDONLY), STDIN_FILENO);
      dup2(open(out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
      dup2(open(err_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
      if (before_exec_) before_exec_();
      execv(argv[0], argv.data());
      _exit(127);
    }
    return process;
  }

  Result wait(pid_t process) const {
    int status = 0;
    waitpid(process, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content_of(path("stdout")),
            content_of(path("stderr"))};
  }

  Result run(const std::vector<std::string>& arguments, const std::string& input = "",
             const std::string& out = "") {
    return wait(start(arguments, input, out));
  }

  std::string binary_ = GATHERFUZZ_BINARY;
  std::filesystem::path folder_;
  std::function<void()> before_exec_;  // in the process that becomes the binary
};

// Polls until `done` holds; false after ten seconds.
template <class Done>
bool eventually(Done done) {
  for (int i = 0; i < 1000; ++i) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// The parent and the state of a process: fields 4 and 3 of its stat file; {0, 'X'} if there is none.
struct ProcessState {
  pid_t parent = 0;
  char state = 'X';
};
inline ProcessState state_of(pid_t process) {
  const std::string stat = content_of("/proc/" + std::to_string(process) + "/stat");
  ProcessState result;
  if (const std::size_t end = stat.rfind(')'); end != std::string::npos)
    std::istringstream(stat.substr(end + 1)) >> result.state >> result.parent;
  return result;
}
inline bool is_gone(pid_t process) {
  const char state = state_of(process).state;
  return state == 'X' || state == 'Z';
}

// A child of `parent`, once it has one; 0 if it gets none.
inline pid_t child_of(pid_t parent) {
  pid_t child = 0;
  eventually([&] {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      if (state_of(std::stoi(name)).parent == parent) child = std::stoi(name);
    }
    return child != 0;
  });
  return child;
}

}  // namespace gatherfuzz
