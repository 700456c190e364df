#include "properties/conformance/random_program.h"

#include <algorithm>

namespace gatherfuzz {

namespace {
constexpr const char* kModes[] = {"global", "thread_local", "relaxed"};
}  // namespace

std::string to_string(const RandomProgram& program) {
  std::string text;
  for (const Step& step : program) {
    const auto n = [](int value) { return std::to_string(value); };
    const std::string stream = "stream " + n(step.stream), event = "event " + n(step.event);
    const std::string on = "(" + stream + ", x" + n(step.target);
    switch (step.kind) {
      case Step::Kind::set:
        text += "launch" + on + " = " + n(step.value) + ")";
        break;
      case Step::Kind::add:
        text += "launch" + on + " += " + n(step.value) + ")";
        break;
      case Step::Kind::triple:
        text += "launch" + on + " = 3 * x" + n(step.source) + " + " + n(step.value) + ")";
        break;
      case Step::Kind::record:
        text += "record(" + event + ", " + stream + ")";
        break;
      case Step::Kind::wait:
        text += "wait(" + stream + ", " + event + ")";
        break;
      case Step::Kind::query:
        text += "query(" + event + ")";
        break;
      case Step::Kind::synchronize:
        text += "synchronize(" + event + ")";
        break;
      case Step::Kind::synchronize_stream:
        text += "synchronize_stream(" + stream + ")";
        break;
      case Step::Kind::begin:
        text += "begin_capture(" + stream + ", " + kModes[step.value % 3] + ")";
        break;
      case Step::Kind::end:
        text += "end_capture(" + stream + ")";
        break;
      case Step::Kind::replay:
        text += "launch_graph(" + stream + ", latest - " + n(step.graph) + ")";
        break;
      case Step::Kind::capturing:
        text += "capturing(" + stream + ")";
        break;
      case Step::Kind::on_thread:
        text += "on_host_thread(" + n(step.value) + ")";
        break;
      case Step::Kind::exchange_mode:
        text += std::string("exchange_capture_mode(") + kModes[step.value % 3] + ")";
        break;
      case Step::Kind::allocate:
        text += "allocate";
        break;
      case Step::Kind::destroy:
        text += "destroy_graph(latest - " + n(step.graph) + ")";
        break;
    }
    text += "\n";
  }
  return text;
}

std::string to_string(const RandomOutcome& outcome) {
  std::string text;
  for (const std::string& step : outcome.steps) text += step + "\n";
  for (const float value : outcome.values)
    text += "x = " + std::to_string(static_cast<long long>(value)) + "\n";
  return text;
}

namespace {

// One run of a program by a rank.
class ProgramRun {
 public:
  ProgramRun(Runtime& rt, std::vector<View<float>>& values, std::vector<std::string>& outcome)
      : rt_(rt), outcome_(outcome) {
    for (int i = 0; i < 2; ++i) values.push_back(make_view<float>(rt.allocate("x", 4, Fill::zero), 0, 1));
    values_ = values;
    streams_ = {0, rt.create_stream("1"), rt.create_stream("2"), rt.create_stream("3", StreamKind::blocking)};
    events_ = {rt.create_event(), rt.create_event()};
  }

  void step(const Step& s) {
    try {
      outcome_.push_back(perform(s));
    } catch (const RuntimeError& error) {
      outcome_.push_back(error_name(error.error()));
    }
  }

  // So that programs end, and what they captured counts.
  void end_open_captures() {
    for (const auto& [stream, thread] : begun_) {
      rt_.on_host_thread(thread);
      Step end;
      end.kind = Step::Kind::end;
      end.stream = stream;
      step(end);
    }
    rt_.on_host_thread(0);
  }

 private:
  static constexpr const char* kDone = "cudaSuccess";

  GraphId graph(const Step& s) const {
    return s.graph < graphs_.size() ? graphs_[graphs_.size() - 1 - s.graph] : GraphId{0};
  }

  std::string perform(const Step& s) {
    const StreamId stream = streams_[s.stream];
    const EventId event = events_[s.event];
    switch (s.kind) {
      case Step::Kind::set:
        rt_.launch(stream, SetTo{values_[s.target], s.value});
        break;
      case Step::Kind::add:
        rt_.launch(stream, AddTo{values_[s.target], s.value});
        break;
      case Step::Kind::triple:
        rt_.launch(stream, TripleAdd{values_[s.source], values_[s.target], s.value});
        break;
      case Step::Kind::record:
        rt_.record(event, stream);
        break;
      case Step::Kind::wait:
        rt_.wait(stream, event);
        break;
      case Step::Kind::query:
        rt_.query(event);
        break;  // the answer depends on time
      case Step::Kind::synchronize:
        rt_.synchronize(event);
        break;
      case Step::Kind::synchronize_stream:
        rt_.synchronize_stream(stream);
        break;
      case Step::Kind::begin:
        rt_.begin_capture(stream, static_cast<CaptureMode>(s.value % 3));
        begun_.emplace_back(s.stream, thread_);
        break;
      case Step::Kind::end:
        graphs_.push_back(rt_.end_capture(stream));
        break;
      case Step::Kind::replay:
        if (graph(s) == 0) return "no graph";
        rt_.launch_graph(stream, graph(s));
        break;
      case Step::Kind::capturing:
        return rt_.capturing(stream) ? "true" : "false";
      case Step::Kind::on_thread:
        thread_ = s.value % 2;
        rt_.on_host_thread(thread_);
        break;
      case Step::Kind::exchange_mode:
        return kModes[static_cast<int>(rt_.exchange_capture_mode(static_cast<CaptureMode>(s.value % 3)))];
      case Step::Kind::allocate:
        rt_.allocate("more", 4, Fill::zero);
        break;
      case Step::Kind::destroy:
        if (graph(s) == 0) return "no graph";
        rt_.destroy_graph(graph(s));
        break;
    }
    return kDone;
  }

  Runtime& rt_;
  std::vector<std::string>& outcome_;
  std::vector<View<float>> values_;
  std::vector<StreamId> streams_;
  std::vector<EventId> events_;
  std::vector<GraphId> graphs_;
  std::vector<std::pair<uint8_t, int>> begun_;  // stream, host thread
  int thread_ = 0;
};

}  // namespace

RandomOutcome run_program(const RandomProgram& program, Machine& machine) {
  RandomOutcome outcome;
  std::vector<View<float>> values;
  machine.run([&](Runtime& rt) {
    ProgramRun run(rt, values, outcome.steps);
    for (const Step& step : program) run.step(step);
    run.end_open_captures();
  });
  for (const View<float>& value : values) outcome.values.push_back(machine.read(0, value));
  return outcome;
}

Prediction predict(const RandomProgram& program, const MakeMachine& simulator) {
  Prediction prediction;
  constexpr int kMany = 5 * kTurns;  // an order that is open must show
  for (int turn = 0; turn < kMany && (turn < kTurns || prediction.values); ++turn) {
    const RandomOutcome outcome = run_program(program, *simulator(1, turn));
    if (turn == 0) {
      prediction.steps = outcome.steps;
      prediction.values = outcome.values;
    }
    if (outcome.steps != prediction.steps) prediction.contradiction = to_string(outcome);
    if (prediction.values && outcome.values != *prediction.values) prediction.values.reset();
  }
  return prediction;
}

std::string disagreement(const RandomProgram& program, const MakeMachine& simulator,
                         const MakeMachine& machine, int turns) {
  const Prediction expected = predict(program, simulator);
  if (!expected.contradiction.empty()) return "the simulator contradicts itself: " + expected.contradiction;
  for (int turn = 0; turn < turns; ++turn) {
    const RandomOutcome found = run_program(program, *machine(1, turn));
    for (std::size_t i = 0; i < std::max(found.steps.size(), expected.steps.size()); ++i) {
      const std::string a = i < expected.steps.size() ? expected.steps[i] : "nothing";
      const std::string b = i < found.steps.size() ? found.steps[i] : "nothing";
      if (a != b) return "step " + std::to_string(i + 1) + ": expected " + a + ", found " + b;
    }
    if (expected.values && *expected.values != found.values)
      return "the end: expected\n" + to_string(RandomOutcome{{}, *expected.values}) + "found\n" +
             to_string(RandomOutcome{{}, found.values});
  }
  return {};
}

RandomProgram shrink(RandomProgram program, const std::function<bool(const RandomProgram&)>& disagrees) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::size_t i = program.size(); i-- > 0;) {
      RandomProgram fewer = program;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (!disagrees(fewer)) continue;
      program = fewer;
      smaller = true;
    }
  }
  return program;
}

}  // namespace gatherfuzz
