#include "properties/conformance/trial.h"

namespace gatherfuzz {

void Trial::holds(int expected, const std::string& what, StreamId stream, const View<float>& view) {
  rt.synchronize_stream(stream);
  is(true, what + " is " + std::to_string(expected), machine_.holds(rt.rank(), view, expected));
}

// All turns of one case.
class CaseRun {
 public:
  CaseRun(const Case& c, const MakeMachine& make, int falsified)
      : case_(c), make_(make), falsified_(falsified) {}

  CaseResult run() {
    const int turns = ends_in_deadlock() ? 1 : kTurns;
    for (int turn = 0; turn < turns && result_.differences.empty(); ++turn) run_turn(turn);
    if (result_.differences.empty())
      for (const auto& [what, values] : expected_)
        for (const int value : values)
          if (!seen_[what].contains(value)) differ(what + ": " + std::to_string(value) + " in no turn");
    return result_;
  }

 private:
  bool ends_in_deadlock() const {
    return case_.kind == Case::Kind::deadlock || case_.kind == Case::Kind::undefined_deadlock;
  }

  void differ(const std::string& difference) { result_.differences.push_back(difference); }

  void run_turn(int turn) {
    const std::unique_ptr<Machine> machine = make_(case_.ranks, turn);
    std::vector<Observations> observations;
    for (int r = 0; r < case_.ranks; ++r) observations.emplace_back(turn == 0 && r == 0 ? falsified_ : -1);
    std::vector<std::unique_ptr<Trial>> trials(observations.size());
    std::string end = "the end";
    try {
      machine->run([&](Runtime& rt) {
        const auto r = static_cast<std::size_t>(rt.rank());
        trials[r] = std::make_unique<Trial>(rt, *machine, observations[r]);
        case_.body(*trials[r]);
      });
    } catch (const RuntimeError& error) {
      end = std::string("an error that the case does not expect, ") + error.what();
    } catch (const Deadlock&) {
      end = "a deadlock";
    }
    if (end == "the end") check_ends(*machine, trials, observations);
    observations[0].expect("the run", ends_in_deadlock() ? "a deadlock" : "the end", end);
    for (int r = 0; r < case_.ranks; ++r) {
      const std::string who = case_.ranks > 1 ? "rank " + std::to_string(r) + ": " : "";
      for (const std::string& difference : observations[static_cast<std::size_t>(r)].differences())
        differ("turn " + std::to_string(turn) + ": " + who + difference);
    }
    result_.observations = observations[0].count();
  }

  void check_ends(Machine& machine, const std::vector<std::unique_ptr<Trial>>& trials,
                  std::vector<Observations>& observations) {
    for (std::size_t r = 0; r < trials.size(); ++r)
      for (const Trial::End& end : trials[r]->ends_) {
        std::string found = "something else";
        for (const int value : end.expected)
          if (machine.holds(static_cast<int>(r), end.view, value)) {
            found = "expected";
            seen_[end.what].insert(value);
          }
        std::string expected;
        for (const int value : end.expected)
          expected += (expected.empty() ? "" : " or ") + std::to_string(value);
        observations[r].expect(end.what + " is " + expected, "expected", found);
        expected_[end.what] = end.expected;
      }
  }

  const Case& case_;
  const MakeMachine& make_;
  int falsified_;
  CaseResult result_;
  std::map<std::string, std::set<int>> expected_;
  std::map<std::string, std::set<int>> seen_;
};

CaseResult run_case(const Case& c, const MakeMachine& make, int falsified) {
  return CaseRun(c, make, falsified).run();
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& table : {capture_cases(), mode_cases(), event_cases(), stream_cases(), legacy_cases(),
                            replay_cases(), collective_cases()})
    all.insert(all.end(), table.begin(), table.end());
  return all;
}

}  // namespace gatherfuzz
