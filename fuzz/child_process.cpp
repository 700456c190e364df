#include "fuzz/child_process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz/exit_code.h"
#include "fuzz/interrupt.h"

namespace gatherfuzz {

bool send_message(int socket, std::string_view message) {
  while (send(socket, message.data(), message.size(), MSG_NOSIGNAL) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

std::string receive_message(int socket) {
  std::string message(kMaxMessage, '\0');
  ssize_t n = 0;
  do {
    n = recv(socket, message.data(), message.size(), 0);
  } while (n < 0 && errno == EINTR);
  message.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return message;
}

void ChildProcess::start(const std::function<void(int socket)>& work) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw InternalError(std::string("cannot make a socket for the worker process: ") + strerror(errno));
  const InterruptsHeld held;
  const pid_t owner = getpid();
  process_ = fork();
  if (process_ == 0) {
    close(ends[0]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == owner) {
      signal(SIGINT, SIG_IGN);
      work(ends[1]);
    }
    _exit(0);
  }
  close(ends[1]);
  if (process_ < 0) {
    process_ = 0;
    close(ends[0]);
    throw InternalError(std::string("cannot start a worker process: ") + strerror(errno));
  }
  socket_ = ends[0];
}

int ChildProcess::stop() {
  if (process_ == 0) return 0;
  close(socket_);
  kill(process_, SIGKILL);  // changes nothing for one that is dead already
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  process_ = 0;
  socket_ = -1;
  return status;
}

}  // namespace gatherfuzz
