// The distributed optimizer on host numbers: who owns what, and steps against the reference, whatever the
// number of ranks and buckets.
#include "impl/optimizer/distributed_optimizer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>

#include "impl/kernels/adam.h"
#include "impl/kernels/kernel_bench_for_tests.h"
#include "impl/param_gather/gather_bench_for_tests.h"
#include "reference/lr_schedule.h"
#include "reference/optimizer.h"

namespace gatherfuzz {
namespace {

using Values = std::vector<float>;

struct Setup {
  int ranks = 1;
  BucketRule rule{};
  OptimizerOptions optimizer{};
  bool share = true;
  DType grad_dtype = DType::f32;
};

// One optimizer a rank, on buffers without a model; gradients are written where a reduction leaves them.
class Optimizers {
 public:
  explicit Optimizers(const Setup& setup)
      : bench(bench_options(setup)), optimizers_(bench.ranks.size()), taken_(bench.ranks.size()) {
    bench.run([&](Runtime& runtime, std::size_t rank) {
      GatherBench::Rank& r = bench.ranks[rank];
      optimizers_[rank] =
          std::make_unique<DistributedOptimizer>(runtime, r.streams, r.buffers, setup.optimizer);
      for (const Shard& shard : optimizers_[rank]->shards())
        for (const ShardPiece& piece : shard.pieces)
          runtime.launch(r.streams.compute,
                         InitMainParams{shard.main.slice(piece.in_shard, piece.count), GatherBench::kSeed,
                                        piece.param, piece.in_param, GatherBench::kDeviation, 0.0f});
    });
  }

  std::size_t params() const { return bench.params.size(); }
  DistributedOptimizer& optimizer(std::size_t rank) { return *optimizers_[rank]; }
  void run(const std::function<void(DistributedOptimizer&)>& body) {
    bench.run([&](Runtime&, std::size_t rank) { body(*optimizers_[rank]); });
  }
  // Whether the step was taken, on which all ranks must agree.
  bool step() {
    bench.run([&](Runtime&, std::size_t rank) { taken_[rank] = optimizers_[rank]->step() ? 1 : 0; });
    for (const int taken : taken_) EXPECT_EQ(taken, taken_[0]);
    return taken_[0] == 1;
  }
  void set_gradients(const std::vector<Values>& gradients) {
    for_each_piece([&](HostMemory& memory, const Shard& shard, const ShardPiece& piece) {
      memory.store(shard.reduced.slice(piece.in_shard, piece.count),
                   gradients[piece.param].data() + piece.in_param);
      memory.end_op();
    });
  }
  // Values of all params, put together from the shards that hold them.
  std::vector<Values> whole(View<float> Shard::*part) {
    std::vector<Values> values;
    for (const BenchParam& param : bench.params)
      values.emplace_back(param.size(), std::numeric_limits<float>::quiet_NaN());
    for_each_piece([&](HostMemory& memory, const Shard& shard, const ShardPiece& piece) {
      std::memcpy(values[piece.param].data() + piece.in_param, memory.in<float>(shard.*part) + piece.in_shard,
                  piece.count * sizeof(float));
    });
    return values;
  }
  float norm(std::size_t rank) { return *bench.world.host()[rank].in<float>(optimizers_[rank]->norm()); }
  template <class F>
  void for_each_piece(F&& f) {
    for (std::size_t rank = 0; rank < optimizers_.size(); ++rank)
      for (const Shard& shard : optimizers_[rank]->shards())
        for (const ShardPiece& piece : shard.pieces) f(bench.world.host()[rank], shard, piece);
  }

  GatherBench bench;

 private:
  static GatherBenchOptions bench_options(const Setup& setup) {
    GatherBenchOptions options;
    options.world.ranks = setup.ranks;
    options.world.memory = MemoryKind::host;
    options.rule = setup.rule;
    options.share = setup.share;
    options.grad_dtype = setup.grad_dtype;
    return options;
  }

  std::vector<std::unique_ptr<DistributedOptimizer>> optimizers_;
  std::vector<int> taken_;
};

// Gradients of many magnitudes, as bf16 values.
std::vector<Values> gradients_of(uint32_t seed, float limit = 1.0f) {
  KernelBench numbers(seed);
  std::vector<Values> gradients;
  for (const BenchParam& param : six_params()) {
    Values& values = gradients.emplace_back(param.size());
    for (float& value : values)
      value = to_float(to_bf16(std::ldexp(numbers.uniform(limit), -static_cast<int>(numbers.below(24)))));
  }
  return gradients;
}

std::size_t differing(const std::vector<Values>& found, const std::vector<Values>& expected) {
  std::size_t n = 0;
  for (std::size_t p = 0; p < expected.size(); ++p) n += differing_bits(found[p], expected[p]);
  return n;
}

const std::vector<BucketRule> kRules = {{}, {1, std::nullopt}, {3000, std::nullopt}, {std::nullopt, 2}};

// The same steps by the reference, from the optimizer's initial main params.
class Expected {
 public:
  Expected(std::vector<Values> main, const OptimizerOptions& options)
      : main_(std::move(main)), options_(options) {
    for (const Values& values : main_) {
      exp_avg_.emplace_back(values.size(), 0.0f);
      exp_avg_sq_.emplace_back(values.size(), 0.0f);
    }
  }
  void step(std::vector<Values> gradients) {
    before_ = main_;
    for (Values& g : gradients)
      if (options_.loss_scale) reference::unscale(g, static_cast<float>(*options_.loss_scale));
    norm_ = reference::global_norm(gradients);
    const float coefficient =
        reference::clip_coefficient(norm_.value, static_cast<float>(options_.clip_grad));
    coefficient_ = coefficient;
    reference::AdamSettings settings{options_.beta1, options_.beta2, static_cast<float>(options_.eps)};
    const LrSchedule& s = options_.schedule;
    const double lr = reference::learning_rate(
        {options_.lr, s.warmup_steps, static_cast<reference::LrDecayStyle>(s.decay_style), s.decay_steps,
         s.min_lr},
        step_);
    ++step_;
    for (std::size_t p = 0; p < main_.size(); ++p) {
      const bool decayed = !options_.decayed.empty() && options_.decayed[p];
      settings.weight_decay = decayed ? static_cast<float>(options_.weight_decay) : 0.0f;
      reference::adam(settings, {main_[p], exp_avg_[p], exp_avg_sq_[p]}, gradients[p], coefficient,
                      static_cast<float>(lr), step_);
    }
  }
  void expect_equal(Optimizers& o) const {
    EXPECT_EQ(differing(o.whole(&Shard::main), main_), 0u);
    EXPECT_EQ(differing(o.whole(&Shard::exp_avg), exp_avg_), 0u);
    EXPECT_EQ(differing(o.whole(&Shard::exp_avg_sq), exp_avg_sq_), 0u);
  }
  const reference::GlobalNorm& norm() const { return norm_; }
  float coefficient() const { return coefficient_; }
  bool step_was_still() const { return main_ == before_; }

 private:
  std::vector<Values> main_, exp_avg_, exp_avg_sq_, before_;
  OptimizerOptions options_;
  reference::GlobalNorm norm_;
  float coefficient_ = 0.0f;
  int step_ = 0;
};

TEST(DistributedOptimizer, ShardsPartitionEveryParamOverTheRanks) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (const BucketRule& rule : kRules) {
      Optimizers o({ranks, rule});
      std::vector<std::vector<int>> owners;
      for (const BenchParam& param : o.bench.params) owners.emplace_back(param.size(), 0);
      o.for_each_piece([&](HostMemory&, const Shard&, const ShardPiece& piece) {
        for (uint32_t i = 0; i < piece.count; ++i) ++owners[piece.param][piece.in_param + i];
      });
      for (const std::vector<int>& param : owners)
        EXPECT_EQ(std::count(param.begin(), param.end(), 1), static_cast<std::ptrdiff_t>(param.size()));
    }
  }
}

// A shard's views are one rank's part of one bucket, and its state overlaps no other shard's.
TEST(DistributedOptimizer, ViewsOfAShardCoverTheSamePartOfItsBucket) {
  Optimizers o({3, {1, std::nullopt}});
  for (std::size_t rank = 0; rank < 3; ++rank) {
    std::map<std::pair<BufferId, uint32_t>, uint32_t> state;  // begin -> end
    for (const Shard& shard : o.optimizer(rank).shards()) {
      const BufferPair& pair = o.bench.ranks[rank].buffers[shard.bucket.buffer];
      const View<real> grads = pair.bucket_grads(shard.bucket.bucket);
      const View<real> params = pair.bucket_params(shard.bucket.bucket);
      const uint32_t n = grads.count() / 3, first = n * static_cast<uint32_t>(rank);
      EXPECT_EQ(shard.reduced.begin, grads.begin + first * 4);
      EXPECT_EQ(shard.staging.begin, params.begin + first * 2);
      EXPECT_EQ(shard.reduced.buffer, grads.buffer);
      EXPECT_EQ(shard.staging.buffer, params.buffer);
      for (const View<float>& view : {shard.main, shard.exp_avg, shard.exp_avg_sq, shard.grads}) {
        EXPECT_EQ(view.count(), n);
        EXPECT_EQ(view.tag, pair.first_bucket + shard.bucket.bucket + 1);
        state[{view.buffer, view.begin}] = view.end();
      }
      for (const View<real>& view : {shard.reduced, shard.staging}) {
        EXPECT_EQ(view.count(), n);
        EXPECT_EQ(view.tag, pair.first_bucket + shard.bucket.bucket + 1);
      }
    }
    ASSERT_EQ(state.size(), 6u * 4);
    for (auto it = state.begin(); std::next(it) != state.end(); ++it) {
      const auto& [buffer, begin] = std::next(it)->first;
      EXPECT_TRUE(buffer != it->first.first || it->second <= begin);
    }
  }
}

// Bits of norm and state are the same for every number of ranks and buckets, and the reference's.
TEST(DistributedOptimizer, StepsAreTheReferencesForEveryPartition) {
  std::size_t steps = 0;
  for (const double clip : {0.0, 0.25, 1000.0}) {
    OptimizerOptions options{0.01, 0.9, 0.95, 1e-8, clip, std::nullopt};
    for (const int ranks : {1, 2, 3, 5, 8}) {
      for (const BucketRule& rule : kRules) {
        Optimizers o({ranks, rule, options});
        Expected expected(o.whole(&Shard::main), options);
        for (uint32_t step = 1; step <= 3; ++step, ++steps) {
          const std::vector<Values> gradients = gradients_of(step);
          o.set_gradients(gradients);
          ASSERT_TRUE(o.step());
          expected.step(gradients);
          ASSERT_EQ(expected.norm().lower, expected.norm().upper);
          for (std::size_t rank = 0; rank < o.bench.ranks.size(); ++rank)
            EXPECT_EQ(o.norm(rank), expected.norm().value);
          EXPECT_EQ(expected.coefficient() < 1.0f, clip == 0.25);
          expected.expect_equal(o);
          EXPECT_EQ(o.optimizer(0).steps(), static_cast<int>(step));
        }
      }
    }
  }
  EXPECT_EQ(steps, 3u * 5 * 4 * 3);
}

// Params that decay and params that do not, in turn, in pairs, or all alike.
TEST(DistributedOptimizer, DecaysWhatItIsToldToForEveryPartition) {
  std::size_t steps = 0;
  for (const std::vector<bool>& decayed :
       std::vector<std::vector<bool>>{{true, false, true, false, true, false},
                                      {false, false, true, true, false, true},
                                      {true, true, true, true, true, true}}) {
    OptimizerOptions options;
    options.lr = 0.01;
    options.weight_decay = 0.3;
    options.decayed = decayed;
    for (const int ranks : {1, 2, 5}) {
      for (const BucketRule& rule : kRules) {
        Optimizers o({ranks, rule, options});
        ASSERT_EQ(o.params(), decayed.size());
        Expected expected(o.whole(&Shard::main), options);
        for (uint32_t step = 1; step <= 2; ++step, ++steps) {
          o.set_gradients(gradients_of(step));
          ASSERT_TRUE(o.step());
          expected.step(gradients_of(step));
          expected.expect_equal(o);
        }
      }
    }
  }
  EXPECT_EQ(steps, 3u * 3 * 4 * 2);
}

// One op a shard where no decay sets params apart.
TEST(DistributedOptimizer, WithoutDecayAShardIsOneUpdate) {
  for (const double decay : {0.0, 0.1}) {
    OptimizerOptions options;
    options.weight_decay = decay;
    options.decayed = {true, false, true, false, true, false};
    Optimizers o({2, {}, options});
    o.set_gradients(gradients_of(1));
    o.bench.log.entries.clear();
    ASSERT_TRUE(o.step());
    std::size_t shards = 0;
    for (std::size_t rank = 0; rank < 2; ++rank) shards += o.optimizer(rank).shards().size();
    if (decay == 0.0) {
      EXPECT_EQ(o.bench.log.count<Adam>(), shards);
    } else {
      EXPECT_GT(o.bench.log.count<Adam>(), shards);
    }
  }
}

TEST(DistributedOptimizer, PaddingStaysZero) {
  OptimizerOptions options;
  options.weight_decay = 0.5;
  options.decayed = {true, false, true, false, true, false};
  Optimizers o({5, {1, std::nullopt}, options});
  o.set_gradients(gradients_of(1));
  o.step();
  std::size_t padding = 0;
  for (std::size_t rank = 0; rank < 5; ++rank) {
    for (const Shard& shard : o.optimizer(rank).shards()) {
      Values used(shard.main.count(), 0.0f);
      for (const ShardPiece& piece : shard.pieces)
        std::fill_n(used.begin() + piece.in_shard, piece.count, 1.0f);
      for (uint32_t i = 0; i < used.size(); ++i) {
        if (used[i] != 0.0f) continue;
        ++padding;
        EXPECT_EQ(o.bench.world.host()[rank].in<float>(shard.main)[i], 0.0f);
      }
    }
  }
  EXPECT_GT(padding, 100u);
}

// Also loss scales that are no FP32 numbers and whose reciprocals are not exact; 1.1 was divided in double.
TEST(DistributedOptimizer, UnscalesByTheReciprocalInFp32) {
  std::size_t fractional = 0;
  for (const double scale : {1.0, 1024.0, 3.0, 1.1, 2.2, 1000.1, 0.7}) {
    OptimizerOptions options;
    options.loss_scale = scale;
    fractional += static_cast<float>(1.0 / scale) != 1.0f / static_cast<float>(scale) ? 1 : 0;
    Optimizers o({2, {}, options});
    Expected expected(o.whole(&Shard::main), options);
    o.set_gradients(gradients_of(9));
    ASSERT_TRUE(o.step());
    expected.step(gradients_of(9));
    EXPECT_EQ(o.norm(0), expected.norm().value);
    expected.expect_equal(o);
  }
  EXPECT_GE(fractional, 2u);
}

TEST(DistributedOptimizer, SkipsOnEveryRankIfOneFoundWhatIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const int ranks : {1, 3, 8}) {
      OptimizerOptions options;
      options.loss_scale = 16.0;
      Optimizers o({ranks, {}, options});
      Expected expected(o.whole(&Shard::main), options);
      std::vector<Values> gradients = gradients_of(2);
      gradients[2][77] = bad;
      o.set_gradients(gradients);
      EXPECT_FALSE(o.step());
      EXPECT_EQ(o.bench.log.count<Adam>(), 0u);
      expected.expect_equal(o);
      EXPECT_EQ(o.optimizer(0).steps(), 0);
      o.set_gradients(gradients_of(3));
      EXPECT_TRUE(o.step()) << "the flag is cleared";
      expected.step(gradients_of(3));
      expected.expect_equal(o);
    }
  }
}

// A norm at the threshold is not over it. Neither LR nor Adam's step number moves with a skipped step.
TEST(DistributedOptimizer, SkipsOnEveryRankIfTheNormIsOverTheThreshold) {
  Optimizers measure({1});
  measure.set_gradients(gradients_of(2));
  measure.step();
  const float norm = measure.norm(0);
  const float larger = std::nextafter(norm, 1e30f), smaller = std::nextafter(norm, 0.0f);
  for (const auto& [threshold, taken] : {std::pair{smaller, false}, {norm, true}, {larger, true}}) {
    for (const int ranks : {1, 3}) {
      OptimizerOptions options;
      options.grad_norm_skip_threshold = static_cast<double>(threshold);
      options.schedule.warmup_steps = 3;
      Optimizers o({ranks, {}, options});
      Expected expected(o.whole(&Shard::main), options);
      o.set_gradients(gradients_of(2));
      EXPECT_EQ(o.step(), taken);
      if (taken) expected.step(gradients_of(2));
      EXPECT_EQ(o.bench.log.count<Adam>() > 0, taken);
      expected.expect_equal(o);
      EXPECT_EQ(o.optimizer(0).steps(), taken ? 1 : 0);
      std::vector<Values> small = gradients_of(3, 0.25f);
      o.set_gradients(small);
      EXPECT_TRUE(o.step());
      expected.step(small);
      expected.expect_equal(o);
    }
  }
}

TEST(DistributedOptimizer, SkipsOnEveryRankIfTheNormIsNotFinite) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    OptimizerOptions options;
    options.grad_norm_skip_threshold = 1e30;
    Optimizers o({3, {}, options});
    Expected expected(o.whole(&Shard::main), options);
    std::vector<Values> gradients = gradients_of(2);
    gradients[2][77] = bad;
    o.set_gradients(gradients);
    EXPECT_FALSE(o.step());
    expected.expect_equal(o);
    o.set_gradients(gradients_of(3));
    EXPECT_TRUE(o.step());
    expected.step(gradients_of(3));
    expected.expect_equal(o);
  }
}

// Replays take the steps that eager runs would: with another LR and bias correction each, after a restore,
// and captured anew.
TEST(DistributedOptimizer, AGraphFreezesNothingThatChanges) {
  for (const int ranks : {1, 3}) {
    OptimizerOptions options;
    options.lr = 0.01;
    options.schedule = {2, LrDecayStyle::linear, 9, 0.001};
    options.weight_decay = 0.1;
    options.decayed = {true, false, true, false, true, false};
    options.cuda_graph_warmup_steps = 2;
    Optimizers o({ranks, {1, std::nullopt}, options});
    Expected expected(o.whole(&Shard::main), options);
    int calls = 0, replayed = 0;
    const auto step = [&] {
      const std::vector<Values> gradients = gradients_of(static_cast<uint32_t>(++calls));
      o.set_gradients(gradients);
      ASSERT_TRUE(o.step());
      expected.step(gradients);
      expected.expect_equal(o);
      replayed += o.optimizer(0).graph() != 0 ? 1 : 0;
    };
    for (int i = 0; i < 3; ++i) step();
    EXPECT_EQ(replayed, 1) << "captured in the third step";
    std::map<const DistributedOptimizer*, OptimizerSnapshot> snapshots;  // by rank
    o.run([&](DistributedOptimizer& optimizer) { optimizer.save(snapshots[&optimizer]); });
    const Expected saved = expected;
    for (int i = 0; i < 2; ++i) step();
    o.run([&](DistributedOptimizer& optimizer) { optimizer.restore(snapshots[&optimizer]); });
    expected = saved;
    for (int i = 0; i < 3; ++i) step();
    EXPECT_EQ(replayed, 6);
    o.run([](DistributedOptimizer& optimizer) { optimizer.drop_graph(); });
    step();
    EXPECT_EQ(replayed, 7) << "at once";
    o.run([](DistributedOptimizer& optimizer) { optimizer.reset_graph(); });
    for (int i = 0; i < 3; ++i) step();
    EXPECT_EQ(replayed, 8) << "after two eager steps";
  }
}

// An overflow that only the division by a small loss scale makes counts too.
TEST(DistributedOptimizer, SkipsWhenUnscalingOverflows) {
  OptimizerOptions options;
  options.loss_scale = 0.125;
  Optimizers o({2, {}, options});
  std::vector<Values> gradients = gradients_of(2);
  gradients[0][0] = std::numeric_limits<float>::max();
  o.set_gradients(gradients);
  EXPECT_FALSE(o.step());
}

TEST(DistributedOptimizer, WithoutALossScaleNothingIsSkipped) {
  Optimizers o({2});
  std::vector<Values> gradients = gradients_of(2);
  gradients[0][0] = std::numeric_limits<float>::infinity();
  o.set_gradients(gradients);
  EXPECT_TRUE(o.step());
  EXPECT_EQ(o.norm(0), std::numeric_limits<float>::infinity());
}

TEST(DistributedOptimizer, RestoreBringsStateAndStepCountBack) {
  Optimizers o({3, {1, std::nullopt}});
  Expected expected(o.whole(&Shard::main), OptimizerOptions{});
  const auto step = [&](uint32_t seed) {
    o.set_gradients(gradients_of(seed));
    o.step();
  };
  step(1);
  expected.step(gradients_of(1));
  for (int round = 0; round < 2; ++round) {
    std::map<const DistributedOptimizer*, OptimizerSnapshot> snapshots;  // by rank
    o.run([&](DistributedOptimizer& optimizer) { optimizer.save(snapshots[&optimizer]); });
    step(2);
    step(3);
    o.run([&](DistributedOptimizer& optimizer) { optimizer.restore(snapshots[&optimizer]); });
    expected.expect_equal(o);
    EXPECT_EQ(o.optimizer(2).steps(), 1 + round);
    step(4);
    expected.step(gradients_of(4));
    expected.expect_equal(o);
  }
}

// The rate belongs to the steps that were taken: a skipped one does not move it, a restore brings it back.
TEST(DistributedOptimizer, LearningRateFollowsTakenSteps) {
  OptimizerOptions options;
  options.lr = 0.01;
  options.loss_scale = 16.0;
  options.schedule = {2, LrDecayStyle::cosine, 6, 0.001};
  Optimizers o({2, {}, options});
  Expected expected(o.whole(&Shard::main), options);
  const auto step = [&](uint32_t seed) {
    o.set_gradients(gradients_of(seed));
    ASSERT_TRUE(o.step());
    expected.step(gradients_of(seed));
    expected.expect_equal(o);
  };
  step(1);
  EXPECT_EQ(expected.step_was_still(), true) << "a warmup begins at 0";
  step(2);
  EXPECT_EQ(expected.step_was_still(), false);
  std::vector<Values> bad = gradients_of(3);
  bad[0][0] = std::numeric_limits<float>::infinity();
  o.set_gradients(bad);
  EXPECT_FALSE(o.step());
  const Expected saved = expected;
  std::map<const DistributedOptimizer*, OptimizerSnapshot> snapshots;  // by rank
  o.run([&](DistributedOptimizer& optimizer) { optimizer.save(snapshots[&optimizer]); });
  for (uint32_t seed = 4; seed < 8; ++seed) step(seed);
  o.run([&](DistributedOptimizer& optimizer) { optimizer.restore(snapshots[&optimizer]); });
  expected = saved;
  for (uint32_t seed = 8; seed < 15; ++seed) step(seed);
}

// Each rank writes its part of the param buffers and nothing else.
TEST(DistributedOptimizer, StagesOwnShardsRoundedToBf16) {
  Optimizers o({3, {1, std::nullopt}, {}, true, DType::bf16});
  o.set_gradients(gradients_of(1));
  o.step();
  for (std::size_t rank = 0; rank < 3; ++rank)
    for (const BufferPair& pair : o.bench.ranks[rank].buffers)
      std::memset(o.bench.world.host()[rank].data(pair.param_view(0, pair.layout.elements)), 0x5A,
                  pair.layout.elements * 2);
  o.run([](DistributedOptimizer& optimizer) { optimizer.stage(); });
  std::size_t own = 0, others = 0;
  for (std::size_t rank = 0; rank < 3; ++rank) {
    HostMemory& memory = o.bench.world.host()[rank];
    for (const Shard& shard : o.optimizer(rank).shards()) {
      const BufferPair& pair = o.bench.ranks[rank].buffers[shard.bucket.buffer];
      const View<real> bucket = pair.bucket_params(shard.bucket.bucket);
      const uint32_t first = (shard.staging.begin - bucket.begin) / 2;
      for (uint32_t i = 0; i < bucket.count(); ++i) {
        const bool mine = i >= first && i < first + shard.staging.count();
        const uint16_t expected = mine ? to_bf16(memory.in<float>(shard.main)[i - first]).bits : 0x5A5A;
        EXPECT_EQ(memory.in<bf16>(bucket)[i].bits, expected);
        ++(mine ? own : others);
      }
    }
  }
  EXPECT_GT(own, 5000u);
  EXPECT_EQ(others, 2 * own);
}

}  // namespace
}  // namespace gatherfuzz
