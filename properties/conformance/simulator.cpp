#include "properties/conformance/simulator.h"

#include "impl/runtime/local/holds.h"

namespace gatherfuzz {

namespace {

class Simulator : public Machine {
 public:
  explicit Simulator(WorldOptions options) : world_(std::move(options)) {}

  void run(const std::function<void(Runtime&)>& body) override { world_.run(body); }
  float read(int rank, const View<float>& view) override {
    return *world_.host().at(static_cast<std::size_t>(rank)).in<float>(view);
  }
  bool holds(int rank, const View<float>& view, int value) override {
    return gatherfuzz::holds(world_, rank, view, value);
  }
  bool numbers() const override { return world_.memory_kind() == MemoryKind::host; }

 private:
  World world_;
};

}  // namespace

WorldOptions turn_options(MemoryKind memory, int ranks, int turn) {
  WorldOptions options;
  options.ranks = ranks;
  options.memory = memory;
  options.schedule = turn == 0       ? Schedule::fifo
                     : turn == 1     ? Schedule::reverse
                     : turn % 2 == 0 ? Schedule::pct
                                     : Schedule::random;
  options.schedule_seed = static_cast<uint64_t>(turn);
  options.op_budget = 100'000;
  return options;
}

MakeMachine simulator(MemoryKind memory) {
  return [memory](int ranks, int turn) {
    return std::make_unique<Simulator>(turn_options(memory, ranks, turn));
  };
}

}  // namespace gatherfuzz
