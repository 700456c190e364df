// Small drawn programs over streams, events, captures and replays of integers, to find what no written case
// says. A program comes to the same errors and values on every machine, unless nothing orders its writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "properties/conformance/trial.h"

namespace gatherfuzz {

struct Step {
  enum class Kind : uint8_t {
    set,
    add,
    triple,
    record,
    wait,
    query,
    synchronize,
    synchronize_stream,
    begin,
    end,
    replay,
    capturing,
    on_thread,
    exchange_mode,
    allocate,
    destroy,
  };
  Kind kind = Kind::set;
  uint8_t stream = 0;  // 0 legacy, 1 and 2 non-blocking, 3 blocking
  uint8_t event = 0;
  uint8_t target = 0;
  uint8_t source = 0;
  uint8_t value = 0;  // of an op; a thread; a mode
  uint8_t graph = 0;  // counted from the latest; without a graph, the step does nothing

  bool operator==(const Step&) const = default;
};

using RandomProgram = std::vector<Step>;

inline constexpr int kMostSteps = 12;

RandomProgram draw_program(uint64_t seed);

// One step a line, e.g. "wait(stream 2, event 0)".
std::string to_string(const RandomProgram& program);

struct RandomOutcome {
  std::vector<std::string> steps;  // "cudaSuccess", an error, or what a question was answered
  std::vector<float> values;       // at the end

  bool operator==(const RandomOutcome&) const = default;
};
std::string to_string(const RandomOutcome& outcome);

// Runs the program on a machine of one rank, then ends what captures it left open.
RandomOutcome run_program(const RandomProgram& program, Machine& machine);

// What the simulator says of a program: the values only if they are the same in every turn.
struct Prediction {
  std::vector<std::string> steps;
  std::optional<std::vector<float>> values;
  std::string contradiction;  // steps that depend on the turn, which no program may have
};
Prediction predict(const RandomProgram& program, const MakeMachine& simulator);

// Empty if the machine does in some of its turns what was predicted; otherwise the first difference.
std::string disagreement(const RandomProgram& program, const MakeMachine& simulator,
                         const MakeMachine& machine, int turns);

// A smallest program that still disagrees: none of its steps can be left out.
RandomProgram shrink(RandomProgram program, const std::function<bool(const RandomProgram&)>& disagrees);

}  // namespace gatherfuzz
