// A process that works for this one and talks with it in messages. It ends with its owner, however that ends.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "properties/program.h"

namespace gatherfuzz {

// Messages on a socket that keeps their boundaries. A longer one than this is not sent.
inline constexpr std::size_t kMaxMessage = kMaxProgramBytes + 4096;
// False if the other end is gone.
bool send_message(int socket, std::string_view message);
// Waits for one. Empty if the other end is gone.
std::string receive_message(int socket);

class ChildProcess {
 public:
  ChildProcess() = default;
  ~ChildProcess() { stop(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Calls `work` in a new process with its end of the socket, which an execve closes unless told otherwise.
  // There Ctrl-C does nothing, as its owner decides. There must be none yet. Throws InternalError.
  void start(const std::function<void(int socket)>& work);
  // Kills it if it lives; returns what waitpid says of its end, 0 if there was none.
  int stop();

  bool exists() const { return process_ != 0; }
  pid_t id() const { return process_; }
  int socket() const { return socket_; }

 private:
  pid_t process_ = 0;  // 0: none
  int socket_ = -1;
};

}  // namespace gatherfuzz
