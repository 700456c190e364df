// The oracles against a machine that changes a few bytes behind everyone's back: one piece of one shard, one
// moment, one position, one length. Each must be reported, by its class and the right parameter's name.
#include <functional>

#include "impl/kernels/adam.h"
#include "impl/kernels/linear.h"
#include "properties/host_monitor.h"
#include "properties/run_rank.h"
#include "properties/symbolic_monitor.h"
#include "properties/test_programs.h"

namespace gatherfuzz {
namespace {

constexpr int kIteration = 2;
constexpr int kRank = 1;

template <class Op>
const Op* as(const OpRef& op) {
  return op.type == &op_type<Op>() ? reinterpret_cast<const Op*>(op.op) : nullptr;
}

class Machine : public Interposer {
 public:
  Machine(const Program& program, MemoryKind memory) : program_(program), world_(options(memory)) {}

  // What is done to the ops of kRank in kIteration: in place of an op's bytes, or after it.
  std::function<const std::byte*(const OpRef&)> instead = [](const OpRef&) { return nullptr; };
  std::function<void(const OpRef&)> then = [](const OpRef&) {};

  std::vector<Violation> run() {
    const Plan plan = plan_program(program_);
    const Dataset dataset = Dataset::synthetic(program_.flags.vocab_size, program_.flags.seed);
    RunOptions fine;
    fine.coarse = false;
    std::vector<int> steps(models_.size(), 0);
    StateCollector collector(world_.ranks(), static_cast<int>(plan.steps.size()));
    if (symbolic()) {
      monitor_ = std::make_unique<SymbolicMonitor>(world_, program_, plan, Judging::stop_at_first);
    } else {
      monitor_ = std::make_unique<HostMonitor>(world_, program_, plan, Judging::stop_at_first, dataset);
    }
    world_.set_observer(monitor_.get());
    world_.set_interposer(this);
    world_.run([&](Runtime& runtime) {
      const auto r = static_cast<std::size_t>(runtime.rank());
      RankProgram(runtime, program_, fine, dataset, *monitor_, models_[r],
                  models_[0].empty() ? nullptr : models_[0].front().get(), steps[r], collector)
          .run();
    });
    return monitor_->verdicts().found;
  }

  const std::vector<Shard>& shards() const { return models_[kRank].front()->parts().optimizer->shards(); }
  const std::string& name(uint32_t param) const { return models_[kRank].front()->parts().params[param].name; }
  // Changes a value, or (symbolic) only the position that it claims.
  void change(const Operand& operand) {
    if (symbolic()) {
      memory().assign(operand, "tampered"_term);
    } else {
      world_.host()[kRank].data(operand)[0] ^= std::byte{1};
    }
  }
  void shift(const Operand& operand) {
    std::vector<Segment> pieces = memory().save(operand);
    for (Segment& s : pieces) s.offset += static_cast<uint32_t>(size_of(operand.dtype));
    memory().restore(operand, pieces);
  }

 private:
  static WorldOptions options(MemoryKind memory) {
    WorldOptions o;
    o.ranks = 2;
    o.memory = memory;
    return o;
  }
  bool symbolic() const { return world_.memory_kind() == MemoryKind::symbolic; }
  SymbolicMemory& memory() { return world_.symbolic()[kRank]; }
  bool meant(const OpRef& op) const { return op.rank == kRank && monitor_->iteration(kRank) == kIteration; }

  int times(const OpRef&) override { return 1; }
  const std::byte* before(const OpRef& op) override { return meant(op) ? instead(op) : nullptr; }
  void after(const OpRef& op) override {
    if (meant(op)) then(op);
  }
  bool honours_wait(int, const OpType*, bool) override { return true; }

  const Program& program_;
  World world_;
  std::vector<RankModels> models_{2};
  std::unique_ptr<Monitor> monitor_;
};

class TamperingTest : public testing::TestWithParam<MemoryKind> {
 protected:
  const Program program = small_program("bf16", "set num_buckets 2\ntrain 4\n");

  // All pieces of kRank's shards, as (shard, piece).
  std::vector<std::pair<std::size_t, std::size_t>> all_pieces() const {
    Machine machine(program, GetParam());
    EXPECT_TRUE(machine.run().empty()) << "nothing was changed";
    std::vector<std::pair<std::size_t, std::size_t>> all;
    for (std::size_t s = 0; s < machine.shards().size(); ++s)
      for (std::size_t p = 0; p < machine.shards()[s].pieces.size(); ++p) all.emplace_back(s, p);
    EXPECT_GT(all.size(), machine.shards().size()) << "some shard must hold several pieces";
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(Memories, TamperingTest, testing::Values(MemoryKind::symbolic, MemoryKind::host),
                         [](const auto& kind) {
                           return std::string(kind.param == MemoryKind::symbolic ? "symbolic" : "host");
                         });

void expect(const std::vector<Violation>& found, FailureClass failure, const std::string& op,
            const std::string& what) {
  ASSERT_FALSE(found.empty()) << what;
  EXPECT_EQ(found[0].failure, failure) << found[0].text;
  EXPECT_EQ(found[0].op, op) << found[0].text;
  EXPECT_EQ(found[0].what, what) << found[0].text;
  EXPECT_EQ(found[0].rank, kRank) << found[0].text;
  EXPECT_EQ(found[0].iteration, kIteration) << found[0].text;
}

TEST_P(TamperingTest, AnyPieceOfMainParamsAndMomentsIsCompared) {
  for (const auto& [s, p] : all_pieces()) {
    for (View<float> Shard::*part : {&Shard::main, &Shard::exp_avg, &Shard::exp_avg_sq}) {
      Machine machine(program, GetParam());
      machine.then = [&, s = s, p = p](const OpRef& op) {
        const Shard& shard = machine.shards()[s];
        const Adam* adam = as<Adam>(op);
        if (adam == nullptr || adam->main.tag != shard.main.tag) return;
        machine.change((shard.*part).slice(shard.pieces[p].in_shard + shard.pieces[p].count - 1, 1));
      };
      const std::vector<Violation> found = machine.run();
      expect(found, FailureClass::wrong_weights, "adam", machine.name(machine.shards()[s].pieces[p].param));
    }
  }
}

TEST_P(TamperingTest, AnyPieceOfAReducedGradientIsCompared) {
  for (const auto& [s, p] : all_pieces()) {
    for (const bool shifted : {false, true}) {
      if (shifted && GetParam() != MemoryKind::symbolic) continue;  // numbers have no position
      Machine machine(program, GetParam());
      machine.then = [&, s = s, p = p](const OpRef& op) {
        const Shard& shard = machine.shards()[s];
        const ReduceScatter* reduce = as<ReduceScatter>(op);
        if (reduce == nullptr || reduce->own.buffer != shard.reduced.buffer ||
            reduce->own.begin != shard.reduced.begin)
          return;
        const View<real> last = shard.reduced.slice(shard.pieces[p].in_shard + shard.pieces[p].count - 1, 1);
        if (shifted) {
          machine.shift(last);
        } else {
          machine.change(last);
        }
      };
      const std::vector<Violation> found = machine.run();
      expect(found, FailureClass::contribution, "copy_reduced_grads",
             machine.name(machine.shards()[s].pieces[p].param));
    }
  }
}

TEST_P(TamperingTest, AWeightIsReadWhole) {
  Machine machine(program, GetParam());
  Linear half;
  machine.instead = [&half](const OpRef& op) -> const std::byte* {
    const Linear* linear = as<Linear>(op);
    if (linear == nullptr) return nullptr;
    half = *linear;
    half.weight.bytes /= 2;
    return reinterpret_cast<const std::byte*>(&half);
  };
  expect(machine.run(), FailureClass::wrong_weights, "linear", "layers.0.qkv");
}

}  // namespace
}  // namespace gatherfuzz
