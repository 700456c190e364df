// The gradient sync: when a group's reduction starts, what it launches, and what it leaves.
#include "impl/param_gather/grad_sync.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "impl/kernels/fill.h"
#include "impl/kernels/gradients.h"
#include "impl/param_gather/gather_bench_for_tests.h"
#include "impl/runtime/local/world_for_tests.h"

namespace gatherfuzz {
namespace {

using Names = std::vector<std::string>;

GatherBenchOptions options_of(WorldOptions world, DType grad_dtype = DType::f32) {
  GatherBenchOptions options;
  options.world = std::move(world);
  options.grad_dtype = grad_dtype;
  return options;
}

// One GradSync a rank, over the six params of the bench: group 0 holds param 4, group 1 param 2, and group 2
// param 1 with the whole params 5, 3 and 0.
class Syncs {
 public:
  Syncs(const GatherBenchOptions& options, GradSyncOptions sync)
      : bench(options), syncs_(bench.ranks.size()) {
    bench.run([&](Runtime& runtime, std::size_t rank) {
      GatherBench::Rank& r = bench.ranks[rank];
      syncs_[rank] = std::make_unique<GradSync>(runtime, r.streams, r.buffers, bench.params.size(), sync);
    });
  }

  Names run(const std::function<void(GradSync&)>& body) {
    bench.run([&](Runtime&, std::size_t rank) { body(*syncs_[rank]); });
    const Names names = bench.log.of(0);
    for (std::size_t r = 1; r < syncs_.size(); ++r) EXPECT_EQ(bench.log.of(static_cast<int>(r)), names);
    return names;
  }
  Names ready(int param) {
    return run([=](GradSync& sync) { sync.grad_ready(param); });
  }
  Names finish() {
    return run([](GradSync& sync) { sync.finish_grad_sync(); });
  }
  // A whole batch; the first one teaches the counts.
  Names batch() {
    return run([](GradSync& sync) {
      sync.zero_grad_buffer();
      for (int param = 5; param >= 0; --param) sync.grad_ready(param);
      sync.finish_grad_sync();
    });
  }
  Names zero() {
    return run([](GradSync& sync) { sync.zero_grad_buffer(); });
  }

  // Every element of a param's gradient on a rank becomes `value`, or stands for it.
  void set(std::size_t rank, uint32_t param, float value) {
    const View<real> grad = syncs_[rank]->main_grad(param);
    if (bench.world.memory_kind() == MemoryKind::symbolic) {
      const bool finite = value - value == 0.0f;
      bench.world.symbolic()[rank].assign(
          grad, finite ? integer_term(static_cast<int>(value)) : term_of("inf"), kNoLabel, finite ? 0 : 1);
    } else {
      HostMemory& memory = bench.world.host()[rank];
      memory.store(grad, std::vector<float>(grad.count(), value).data());
      memory.end_op();
    }
  }
  const GradSync& sync(std::size_t rank) const { return *syncs_[rank]; }

  GatherBench bench;

 private:
  std::vector<std::unique_ptr<GradSync>> syncs_;
};

class GradSyncs : public BothMemories {};
INSTANTIATE_TEST_SUITE_P(Memories, GradSyncs, kBothMemories, memory_name);

// What a group's reduction launches, without scaling if it averages itself.
Names reduction(const std::vector<int>& buckets, bool scales) {
  Names names;
  for (const int b : buckets)
    if (scales) names.push_back("scale_gradients:" + std::to_string(b));
  for (const int b : buckets) names.push_back("reduce_scatter:" + std::to_string(b));
  return names;
}
const std::vector<int> kGroup2 = {2, 3, 4, 5};

Names joined(std::initializer_list<Names> parts) {
  Names all;
  for (const Names& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST_P(GradSyncs, TheFirstBatchStartsNothingEarly) {
  Syncs s(options_of(options(2)), {true, false, false});
  EXPECT_EQ(s.zero(), (Names{"zero_grad_buffer", "zero_grad_buffer"}));
  for (int param = 5; param >= 0; --param) EXPECT_EQ(s.ready(param), Names{}) << param;
  EXPECT_EQ(s.finish(), joined({reduction({0}, true), reduction({1}, true), reduction(kGroup2, true)}));
}

TEST_P(GradSyncs, LaterBatchesStartAGroupWhenItsCountIsReached) {
  Syncs s(options_of(options(2)), {true, false, false});
  s.batch();
  for (int batch = 0; batch < 2; ++batch) {
    s.zero();
    EXPECT_EQ(s.ready(5), Names{});
    EXPECT_EQ(s.ready(4), reduction({0}, true));
    EXPECT_EQ(s.ready(3), Names{});
    EXPECT_EQ(s.ready(1), Names{});
    EXPECT_EQ(s.ready(0), reduction(kGroup2, true)) << "complete before group 1";
    EXPECT_EQ(s.finish(), reduction({1}, true)) << "what has not started starts at the end";
  }
}

// A parameter that is used twice is noticed twice.
TEST_P(GradSyncs, CountsNoticesNotParams) {
  Syncs s(options_of(options(2)), {true, false, false});
  s.run([](GradSync& sync) {
    sync.zero_grad_buffer();
    for (const int param : {4, 4, 2}) sync.grad_ready(param);
    sync.finish_grad_sync();
  });
  s.zero();
  EXPECT_EQ(s.ready(4), Names{});
  EXPECT_EQ(s.ready(4), reduction({0}, true));
  EXPECT_EQ(s.ready(2), reduction({1}, true));
}

TEST_P(GradSyncs, WithoutOverlapAllStartAtTheEnd) {
  Syncs s(options_of(options(2)), {false, false, false});
  s.batch();
  s.zero();
  for (int param = 5; param >= 0; --param) EXPECT_EQ(s.ready(param), Names{});
  EXPECT_EQ(s.finish().size(), 12u);
}

TEST_P(GradSyncs, FinishingTwiceAndAfterAReplayIsHarmless) {
  Syncs s(options_of(options(2)), {true, false, false});
  s.batch();
  EXPECT_EQ(s.finish(), Names{});
  s.zero();
  s.run([](GradSync& sync) { sync.mark_all_finished(); });
  EXPECT_EQ(s.finish(), Names{});
  s.zero();
  EXPECT_EQ(s.finish().size(), 12u);
}

TEST_P(GradSyncs, ZeroGradBufferForgetsNoticesAndClearsEveryGradient) {
  Syncs s(options_of(options(2)), {true, false, false});
  s.batch();
  s.zero();
  s.ready(5);
  s.ready(3);
  for (uint32_t p = 0; p < 6; ++p) s.set(1, p, 3.0f);
  s.zero();
  EXPECT_EQ(s.ready(1), Names{});
  EXPECT_EQ(s.ready(0), Names{}) << "two of four notices, not four";
  for (uint32_t p = 0; p < 6; ++p)
    EXPECT_TRUE(holds(s.bench.world, 1, View<float>(s.sync(1).main_grad(p)), 0));
}

TEST_P(GradSyncs, AveragingInTheCollectiveScalesNothing) {
  Syncs s(options_of(options(3)), {false, true, false});
  EXPECT_EQ(s.batch(), joined({{"zero_grad_buffer", "zero_grad_buffer"},
                               reduction({0}, false),
                               reduction({1}, false),
                               reduction(kGroup2, false)}));
  for (const ReduceScatter& op : s.bench.log.all<ReduceScatter>())
    EXPECT_EQ(op.reduction, Reduction::average);
  EXPECT_EQ(s.bench.log.count<ReduceScatter>(), 18u);
}

TEST_P(GradSyncs, ScalesByTheNumberOfRanksOnTheComputeStream) {
  Syncs s(options_of(options(3)), {false, false, false});
  s.batch();
  for (const ScaleGradients& op : s.bench.log.all<ScaleGradients>()) EXPECT_EQ(op.factor.value, 1.0f / 3.0f);
  for (const ReduceScatter& op : s.bench.log.all<ReduceScatter>()) EXPECT_EQ(op.reduction, Reduction::sum);
  for (const OpLog::Entry& e : s.bench.log.entries) {
    const Streams& streams = s.bench.ranks[static_cast<std::size_t>(e.rank)].streams;
    EXPECT_EQ(e.stream, e.type == &op_type<ReduceScatter>() ? streams.comm : streams.compute) << e.name;
  }
  EXPECT_EQ(s.bench.log.count<ScaleGradients>(), 18u);
}

TEST_P(GradSyncs, OneRankReducesNothing) {
  for (const bool average : {false, true}) {
    Syncs s(options_of(options(1)), {true, average, false});
    EXPECT_EQ(s.batch(), (Names{"zero_grad_buffer", "zero_grad_buffer"}));
    EXPECT_EQ(s.batch(), (Names{"zero_grad_buffer", "zero_grad_buffer"}));
  }
}

// Own shards hold the mean of all ranks' gradients; the other shards keep the rank's own.
TEST_P(GradSyncs, OwnShardsHoldTheMean) {
  std::size_t pieces = 0;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const bool average : {false, true}) {
      Syncs s(options_of(options(2), dtype), {false, average, false});
      s.zero();
      for (std::size_t rank = 0; rank < 2; ++rank)
        for (uint32_t p = 0; p < 6; ++p) s.set(rank, p, static_cast<float>(2 * (rank + 1) + 4 * p));
      s.finish();
      for (std::size_t rank = 0; rank < 2; ++rank) {
        for (const BufferPair& pair : s.bench.ranks[rank].buffers) {
          for (uint32_t b = 0; b < pair.layout.buckets.size(); ++b) {
            const uint32_t shard = pair.layout.buckets[b].begin +
                                   static_cast<uint32_t>(rank) * (pair.layout.buckets[b].count() / 2);
            for (const ShardPiece& piece : shard_pieces(pair.layout, b, static_cast<uint32_t>(rank), 2)) {
              const View<real> view = pair.grad_view(shard + piece.in_shard, piece.count);
              const int mean = 3 + 4 * static_cast<int>(piece.param);
              ++pieces;
              if (GetParam() == MemoryKind::host) {
                HostMemory& memory = s.bench.world.host()[rank];
                const float* values = memory.load(view);
                for (uint32_t i = 0; i < piece.count; ++i) EXPECT_EQ(values[i], static_cast<float>(mean));
                memory.end_op();
              } else {
                s.bench.world.symbolic()[rank].pieces(view, [&](const Segment& found, uint32_t) {
                  EXPECT_EQ(found.term, integer_term(2 * mean) * scale_term(0.5f));
                });
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GE(pieces, 4u * 6);
}

// Each group is checked before it is reduced, so nothing that is not finite goes over the wire.
TEST_P(GradSyncs, RefusesWhatIsNotFiniteBeforeItsReduction) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Syncs s(options_of(options(2), dtype), {false, false, true});
      s.zero();
      EXPECT_NO_THROW(s.finish());
      s.zero();
      for (std::size_t rank = 0; rank < 2; ++rank) s.set(rank, 4, bad);
      EXPECT_THROW(s.finish(), NonfiniteGradient);
      EXPECT_EQ(s.bench.log.count<ReduceScatter>() + s.bench.log.count<ScaleGradients>(), 0u);
      EXPECT_GE(s.bench.log.count<CheckGradients>(), 1u);
    }
  }
}

TEST_P(GradSyncs, OneRankRefusesToo) {
  Syncs s(options_of(options(1)), {false, false, true});
  s.zero();
  s.set(0, 0, std::numeric_limits<float>::infinity());
  EXPECT_THROW(s.finish(), NonfiniteGradient);
}

// The notices of a first batch that was refused were added to those of the next one, and no group started
// early ever after.
TEST_P(GradSyncs, ARefusedFirstBatchTeachesNothing) {
  Syncs s(options_of(options(2)), {true, false, true});
  s.zero();
  for (int param = 5; param >= 0; --param) s.ready(param);
  for (std::size_t rank = 0; rank < 2; ++rank) s.set(rank, 4, std::numeric_limits<float>::infinity());
  EXPECT_THROW(s.finish(), NonfiniteGradient);
  s.batch();
  s.zero();
  s.ready(4);
  EXPECT_EQ(s.bench.log.count<ReduceScatter>(), 2u) << "bucket 0 on both ranks";
}

TEST_P(GradSyncs, MainGradsAreTheBuffersOwnRanges) {
  Syncs s(options_of(options(2), DType::bf16), {});
  for (uint32_t p = 0; p < 6; ++p) {
    const View<real> grad = s.sync(1).main_grad(p);
    EXPECT_EQ(grad.count(), s.bench.params[p].size());
    EXPECT_EQ(grad.dtype, DType::bf16);
    EXPECT_EQ(grad.tag, p + 1);
    EXPECT_EQ(grad.buffer, s.bench.ranks[1].buffers[s.bench.params[p].mxfp8 ? 0 : 1].grads);
  }
}

}  // namespace
}  // namespace gatherfuzz
