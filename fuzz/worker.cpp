#include "fuzz/worker.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <vector>

#include "fuzz/exit_code.h"
#include "fuzz/interrupt.h"
#include "fuzz/outcome_message.h"

namespace gatherfuzz {

namespace {

// A request is a byte for the runtime, one for whether to tell the story, and the program's text; an answer
// is an outcome's message. Both keep their boundaries on a socket of this type, and fit.
constexpr int kSocketType = SOCK_SEQPACKET | SOCK_CLOEXEC;
constexpr std::size_t kMaxMessage = kMaxProgramBytes + 4096;

bool send_message(int socket, std::string_view message) {
  while (send(socket, message.data(), message.size(), MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

// Empty when the other end is gone.
std::string receive_message(int socket) {
  std::string message(kMaxMessage, '\0');
  ssize_t n = 0;
  do {
    n = recv(socket, message.data(), message.size(), 0);
  } while (n < 0 && errno == EINTR);
  message.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return message;
}

Outcome crashed(std::string text) {
  Outcome outcome;
  outcome.verdict = Verdict::fail;
  outcome.failure = FailureClass::crash;
  outcome.text = std::move(text);
  uint64_t hash = term_of("crash");
  for (const char c : outcome.text)
    if (c < '0' || c > '9') hash = mix(hash, static_cast<unsigned char>(c));
  outcome.signature = hash >> 32;
  return outcome;
}

Outcome answer(std::string_view request) {
  RunOptions options;
  options.runtime = static_cast<RuntimeKind>(request.front());
  options.story = request[1] != 0;
  const ParseResult parsed = parse_program(request.substr(2));
  try {
    return run_program(parsed.program.value(), options);
  } catch (const std::exception& error) {
    return crashed(std::string("an exception got out of the program: ") + error.what());
  }
}

[[noreturn]] void serve(int socket, pid_t owner) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != owner) _exit(0);
  signal(SIGINT, SIG_IGN);  // the owner decides
  for (;;) {
    const std::string request = receive_message(socket);
    if (request.empty() || !send_message(socket, to_message(answer(request)))) _exit(0);
  }
}

std::string death_text(int status) {
  if (!WIFSIGNALED(status))
    return "the worker process exited with status " + std::to_string(WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  return "the worker process died of signal " + std::to_string(number) + " (" + strsignal(number) + ")";
}

}  // namespace

void Worker::start() {
  int ends[2];
  if (socketpair(AF_UNIX, kSocketType, 0, ends) != 0)
    throw InternalError(std::string("cannot make a socket for the worker process: ") + strerror(errno));
  const InterruptsHeld held;
  const pid_t owner = getpid();
  process_ = fork();
  if (process_ == 0) {
    close(ends[0]);
    serve(ends[1], owner);
  }
  close(ends[1]);
  if (process_ < 0) {
    process_ = 0;
    close(ends[0]);
    throw InternalError(std::string("cannot start a worker process: ") + strerror(errno));
  }
  socket_ = ends[0];
}

std::string Worker::stop() {
  if (process_ == 0) return "";
  close(socket_);
  kill(process_, SIGKILL);  // changes nothing for one that is dead already
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = 0;
  socket_ = -1;
  return death_text(status);
}

void Worker::begin(std::string_view program, RuntimeKind runtime, bool story) {
  if (process_ == 0) start();
  begun_ = std::chrono::steady_clock::now();
  std::string request(1, static_cast<char>(runtime));
  request += static_cast<char>(story ? 1 : 0);
  request += program;
  send_message(socket_, request);  // what was not sent is not answered
}

Outcome Worker::finish() {
  const std::string message = receive_message(socket_);
  if (!message.empty()) return from_message(message);
  const std::string death = stop();
  stop_if_interrupted();
  Outcome outcome = crashed(death);
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  return outcome;
}

Outcome Worker::run(const Program& program, RuntimeKind runtime, bool story) {
  stop_if_interrupted();
  begin(print_program(program), runtime, story);
  const KilledOnInterrupt waited_for(process_);
  if (interrupted()) stop();  // it came before the line above
  return finish();
}

}  // namespace gatherfuzz
