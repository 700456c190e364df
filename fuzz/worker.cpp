#include "fuzz/worker.h"

#include <unistd.h>

#include "fuzz/guarded_run.h"
#include "fuzz/interrupt.h"
#include "fuzz/outcome_message.h"

namespace gatherfuzz {

namespace {

// A request is a byte for the runtime, one for whether to tell the story, and the program's text; an answer
// is an outcome's message.
Outcome answer(std::string_view request, int most_seconds) {
  RunOptions options;
  options.runtime = static_cast<RuntimeKind>(request.front());
  options.story = request[1] != 0;
  return guarded_run(parse_program(request.substr(2)).program.value(), options, most_seconds);
}

void serve(int socket, int most_seconds) {
  for (;;) {
    const std::string request = receive_message(socket);
    if (request.empty() || !send_message(socket, to_message(answer(request, most_seconds)))) _exit(0);
  }
}

}  // namespace

void Worker::begin(std::string_view program, RuntimeKind runtime, bool story) {
  if (!process_.exists()) process_.start([this](int socket) { serve(socket, most_seconds_); });
  begun_ = std::chrono::steady_clock::now();
  std::string request(1, static_cast<char>(runtime));
  request += static_cast<char>(story ? 1 : 0);
  request += program;
  send_message(process_.socket(), request);  // what was not sent is not answered
}

Outcome Worker::finish() {
  const std::string message = receive_message(process_.socket());
  if (!message.empty()) return from_message(message);
  Outcome outcome = outcome_of_death(process_.stop());
  stop_if_interrupted();
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  return outcome;
}

Outcome Worker::run(const Program& program, RuntimeKind runtime, bool story) {
  stop_if_interrupted();
  begin(print_program(program), runtime, story);
  const KilledOnInterrupt waited_for(process_.id());
  if (interrupted()) process_.stop();  // it came before the line above
  return finish();
}

}  // namespace gatherfuzz
