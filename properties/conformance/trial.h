// A conformance case: a tiny program over the runtime contract, written once and run on every machine that
// implements it. What a machine does must be what the case expects; where the GPU and a case differ, the GPU
// is right, and the case and the simulator are mended.
//
// Work that nothing orders may turn out in several ways, so a case runs for several turns: another schedule
// on the simulator, other delays on a GPU.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "impl/runtime/integer_ops.h"
#include "impl/runtime/runtime.h"
#include "properties/conformance/observations.h"

namespace gatherfuzz {

// Ranks that run the contract: a simulated world, or a GPU.
class Machine {
 public:
  virtual ~Machine() = default;
  // Runs `body` as every rank's host code until all work has ended. Throws what it throws, and Deadlock.
  virtual void run(const std::function<void(Runtime&)>& body) = 0;
  // The first element; only where memory holds numbers.
  virtual float read(int rank, const View<float>& view) = 0;
  // Whether every element holds the integer. Nothing may be running that writes it.
  virtual bool holds(int rank, const View<float>& view, int value) = 0;
  // False where memory holds terms: averages and maxima are no integers then.
  virtual bool numbers() const { return true; }
};

// A machine of so many ranks, for one turn; turn 0 runs in issue order, or without delays.
using MakeMachine = std::function<std::unique_ptr<Machine>(int ranks, int turn)>;
constexpr int kTurns = 12;

// One rank's run of a case.
class Trial {
 public:
  Trial(Runtime& runtime, Machine& machine, Observations& observations)
      : rt(runtime), machine_(machine), observations_(observations) {}

  Runtime& rt;

  View<float> value() { return make_view<float>(rt.allocate("value", 4, Fill::zero), 0, 1); }

  // The call must throw this error, or none.
  template <class Call>
  void fails(Error error, const std::string& what, Call&& call) {
    observations_.expect(what, error_name(error), outcome(call));
  }
  template <class Call>
  void succeeds(const std::string& what, Call&& call) {
    observations_.expect(what, kSuccess, outcome(call));
  }
  void is(bool expected, const std::string& what, bool found) {
    observations_.expect(what, expected ? "true" : "false", found ? "true" : "false");
  }

  // Once the stream has come this far, the view must hold the integer.
  void holds(int expected, const std::string& what, StreamId stream, const View<float>& view);
  bool numbers() const { return machine_.numbers(); }
  // When all work has ended, the view must hold the integer, or one of these, each of them in some turn.
  void ends_with(int expected, const std::string& what, const View<float>& view) {
    ends_with_any({expected}, what, view);
  }
  void ends_with_any(std::set<int> expected, const std::string& what, const View<float>& view) {
    ends_.push_back({what, view, std::move(expected)});
  }

 private:
  friend class CaseRun;

  static constexpr const char* kSuccess = "cudaSuccess";

  struct End {
    std::string what;
    View<float> view;
    std::set<int> expected;
  };

  template <class Call>
  static std::string outcome(Call&& call) {
    try {
      call();
      return kSuccess;
    } catch (const RuntimeError& error) {
      return error_name(error.error());
    }
  }

  Machine& machine_;
  Observations& observations_;
  std::vector<End> ends_;
};

struct Case {
  // What the case says of machines: both do the same; or a GPU's behaviour is undefined (it is not run
  // there), and the simulator must report the error or the deadlock; or NCCL would hang, and the simulator
  // and loopback must report the deadlock.
  enum class Kind : uint8_t { same, undefined, undefined_deadlock, deadlock };

  const char* rule;
  const char* name;
  void (*body)(Trial&);
  Kind kind = Kind::same;
  int ranks = 1;
  // What a GPU corrected: before, the rule or the simulator said otherwise. Seen on an H200 with driver
  // 580.159.04, CUDA 13.0 and NCCL 2.28.3; another version may differ, and then the case does.
  const char* correction = "";
};

std::span<const Case> capture_cases();
std::span<const Case> mode_cases();
std::span<const Case> event_cases();
std::span<const Case> stream_cases();
std::span<const Case> legacy_cases();
std::span<const Case> replay_cases();
std::span<const Case> collective_cases();
std::vector<Case> all_cases();

struct CaseResult {
  int observations = 0;  // in one turn
  std::vector<std::string> differences;
};

// Runs the case for all turns; of a deadlock, which takes a GPU seconds, the first turn alone. `falsified`:
// as in Observations, for rank 0 and the first turn.
CaseResult run_case(const Case& c, const MakeMachine& make, int falsified = -1);

}  // namespace gatherfuzz
