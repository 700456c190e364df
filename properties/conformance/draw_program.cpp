// Which programs are drawn, and how often what.
#include "properties/conformance/random_program.h"

namespace gatherfuzz {

namespace {

// splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed) {}
  uint8_t below(int n) {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<uint8_t>((z ^ (z >> 31)) % static_cast<uint64_t>(n));
  }

 private:
  uint64_t state_;
};

struct Share {
  Step::Kind kind;
  int outside, inside;  // how often it is drawn outside of a capture and in one
};

// A call that breaks a capture is rare inside, or few captures would end well.
constexpr Share kShares[] = {
    {Step::Kind::set, 8, 10},        {Step::Kind::add, 8, 10},
    {Step::Kind::triple, 16, 20},    {Step::Kind::record, 14, 18},
    {Step::Kind::wait, 14, 20},      {Step::Kind::query, 4, 1},
    {Step::Kind::synchronize, 4, 1}, {Step::Kind::synchronize_stream, 5, 1},
    {Step::Kind::begin, 14, 5},      {Step::Kind::end, 1, 12},
    {Step::Kind::replay, 14, 2},     {Step::Kind::capturing, 1, 2},
    {Step::Kind::on_thread, 2, 4},   {Step::Kind::exchange_mode, 2, 2},
    {Step::Kind::allocate, 1, 1},    {Step::Kind::destroy, 1, 1},
};

// What the generator looks back at. It only guesses: what a capture comes to is for the runtimes to say.
struct History {
  bool in_capture = false;
  uint8_t begun = 1;     // stream of the latest begin
  uint8_t recorded = 0;  // event of the latest record
  Step::Kind latest = Step::Kind::capturing;

  void see(const Step& step) {
    latest = step.kind;
    if (step.kind == Step::Kind::record) recorded = step.event;
    if (step.kind == Step::Kind::end && step.stream == begun) in_capture = false;
    if (step.kind != Step::Kind::begin) return;
    in_capture = true;
    begun = step.stream;
  }
};

Step::Kind draw_kind(Draw& draw, const History& history) {
  if (history.latest == Step::Kind::record && draw.below(2) == 0) return Step::Kind::wait;
  if (history.latest == Step::Kind::end && draw.below(2) == 0) return Step::Kind::replay;
  int left = 0;
  for (const Share& s : kShares) left += history.in_capture ? s.inside : s.outside;
  left = draw.below(left);
  for (const Share& s : kShares) {
    left -= history.in_capture ? s.inside : s.outside;
    if (left < 0) return s.kind;
  }
  return Step::Kind::set;
}

Step draw_step(Draw& draw, const History& history) {
  Step step;
  step.kind = draw_kind(draw, history);
  step.stream = draw.below(12) == 0 ? uint8_t{0} : static_cast<uint8_t>(1 + draw.below(3));
  step.event = draw.below(2);
  step.target = draw.below(2);
  step.source = draw.below(2);
  step.value = static_cast<uint8_t>(1 + draw.below(3));
  step.graph = draw.below(4) == 0 ? uint8_t{1} : uint8_t{0};
  // Ends are mostly of the latest capture, waits for the latest record, and every second wait joins.
  if (step.kind == Step::Kind::end && draw.below(4) > 0) step.stream = history.begun;
  if (step.kind == Step::Kind::wait && draw.below(4) > 0) step.event = history.recorded;
  if (step.kind == Step::Kind::wait && history.in_capture && draw.below(2) == 0) step.stream = history.begun;
  if (step.kind == Step::Kind::on_thread) step.value = draw.below(2);
  return step;
}

}  // namespace

RandomProgram draw_program(uint64_t seed) {
  Draw draw(seed);
  RandomProgram program;
  History history;
  const auto add = [&](const Step& step) {
    program.push_back(step);
    history.see(step);
  };
  if (draw.below(2) == 0) {
    Step begin = draw_step(draw, history);
    begin.kind = Step::Kind::begin;
    add(begin);
  }
  const std::size_t steps = 4 + draw.below(kMostSteps - 3);
  const std::size_t tail = draw.below(2) == 0 ? 2 : 0;  // an end and a replay
  while (program.size() + tail < steps) add(draw_step(draw, history));
  if (tail > 0) {
    Step end, replay = draw_step(draw, history);
    end.kind = Step::Kind::end;
    end.stream = history.begun;
    replay.kind = Step::Kind::replay;
    add(end);
    add(replay);
  }
  return program;
}

}  // namespace gatherfuzz
