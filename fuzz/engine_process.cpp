#include "fuzz/engine_process.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "fuzz/engine_messages.h"
#include "fuzz/exit_code.h"
#include "fuzz/guarded_run.h"
#include "fuzz/outcome_message.h"
#include "fuzz/output.h"
#include "fuzz/version.h"
#include "impl/runtime/symbolic/term.h"

namespace gatherfuzz {

namespace {

constexpr int kMostIdleDeaths = 5;
constexpr std::streamoff kLastWords = 2000;  // bytes

// libFuzzer takes 32 bits, and chooses for itself when they are 0.
uint32_t engine_seed(uint64_t seed) {
  return static_cast<uint32_t>(seed) | 1u;
}

}  // namespace

void EngineProcess::start() {
  if (process_.exists()) return;
  running_.reset();
  process_.start([this](int socket) { become_engine(socket); });
  ++starts_;
}

void EngineProcess::become_engine(int socket) const {
  fcntl(socket, F_SETFD, 0);  // it outlives the execve
  for (const auto& [name, value] : command_.environment) {
    if (value.empty()) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  setenv(kReportVariable, std::to_string(socket).c_str(), 1);
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  const int log = open(command_.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  std::vector<std::string> words = command_.arguments;
  words.insert(words.begin(),
               {command_.binary, "-seed=" + std::to_string(engine_seed(mix(command_.seed, starts_)))});
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  print_note(command_.binary + ": " + strerror(errno));
  _exit(127);
}

std::optional<EngineProcess::Finished> EngineProcess::read(uint64_t number) {
  const std::string message = receive_message(process_.socket());
  if (message.empty()) return died();
  const std::string_view content = std::string_view(message).substr(1);
  switch (message.front()) {
    case kVersionMessage:
      if (content == version_text()) break;
      throw UsageError("--engine libfuzzer: expected a fuzz target of this build, " + version_text() +
                       ", found " + std::string(content) + " in " + command_.binary + ": build both anew");
    case kProgramMessage:
      running_file_.record(number, content);
      running_ = parse_program(content).program.value();
      break;
    case kOutcomeMessage: {
      Finished finished{std::move(running_.value()), from_message(content)};
      running_.reset();
      idle_deaths_ = 0;
      return finished;
    }
    default:
      throw InternalError("the fuzz target " + command_.binary + " sent a message of an unknown kind");
  }
  return std::nullopt;
}

std::optional<EngineProcess::Finished> EngineProcess::died() {
  const Outcome outcome = outcome_of_death(process_.stop());
  if (running_) {
    Finished finished{std::move(*running_), outcome, true};
    running_.reset();
    idle_deaths_ = 0;
    return finished;
  }
  if (++idle_deaths_ >= kMostIdleDeaths)
    throw InternalError("the fuzz target " + command_.binary + " ended " + std::to_string(idle_deaths_) +
                        " times without having run a program: " + outcome.text + "; it said (" +
                        command_.log + "):\n" + last_words());
  return std::nullopt;
}

std::string EngineProcess::last_words() const {
  std::ifstream log(command_.log, std::ios::binary | std::ios::ate);
  const std::streamoff size = log.tellg();
  if (size <= 0) return "nothing";
  log.seekg(std::max<std::streamoff>(0, size - kLastWords));
  return {std::istreambuf_iterator<char>(log), {}};
}

}  // namespace gatherfuzz
