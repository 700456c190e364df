// The forward pre-hook and the forced sync: what they launch, in which order, and what they leave.
#include "impl/param_gather/param_gather.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "impl/kernels/fill.h"
#include "impl/kernels/quantize_weight.h"
#include "impl/param_gather/gather_bench_for_tests.h"
#include "impl/runtime/local/world_for_tests.h"

namespace gatherfuzz {
namespace {

using Names = std::vector<std::string>;

struct Case {
  MemoryKind memory;
  int ranks;
  bool share;
  DType grad_dtype;
};

GatherBenchOptions options_of(const Case& c) {
  GatherBenchOptions options;
  options.world.memory = c.memory;
  options.world.ranks = c.ranks;
  options.share = c.share;
  options.grad_dtype = c.grad_dtype;
  return options;
}

// One ParamGather a rank; every run's host code is the same on all ranks.
class Gathers {
 public:
  explicit Gathers(const GatherBenchOptions& options, bool overlap = true)
      : bench(options), gathers_(bench.ranks.size()) {
    bench.run([&](Runtime& runtime, std::size_t rank) {
      GatherBench::Rank& r = bench.ranks[rank];
      gathers_[rank] = std::make_unique<ParamGather>(runtime, r.streams, r.buffers, r.weights,
                                                     ParamGatherOptions{overlap, ScaleRounding::up});
    });
  }

  // What rank 0 executed; the other ranks must have executed the same.
  Names run(const std::function<void(ParamGather&)>& body) {
    bench.run([&](Runtime&, std::size_t rank) { body(*gathers_[rank]); });
    const Names names = bench.log.of(0);
    for (std::size_t r = 1; r < gathers_.size(); ++r) EXPECT_EQ(bench.log.of(static_cast<int>(r)), names);
    return names;
  }
  // Staging, and what hooks for `params` launch after it, before any of it has run.
  void stage(const std::vector<int>& params = {}) {
    bench.run([&](Runtime& runtime, std::size_t rank) {
      bench.stage(runtime);
      gathers_[rank]->clear_dispatched();
      gathers_[rank]->forward_pre_hook(params);
    });
  }
  Names hook(const std::vector<int>& params) {
    return run([&](ParamGather& gather) { gather.forward_pre_hook(params); });
  }
  // On every rank the weights are those of the main params, and shared param ranges are clear.
  void expect_current() {
    for (std::size_t r = 0; r < gathers_.size(); ++r)
      for (uint32_t p = 0; p < bench.params.size(); ++p) expect_weight(r, p);
  }

  GatherBench bench;

 private:
  void expect_weight(std::size_t rank, uint32_t p) {
    SCOPED_TRACE("rank " + std::to_string(rank) + ", param " + std::to_string(p));
    const bool symbolic = bench.world.memory_kind() == MemoryKind::symbolic;
    if (symbolic) {
      expect_terms(bench.world.symbolic()[rank], rank, p);
    } else {
      expect_numbers(bench.world.host()[rank], rank, p);
    }
  }
  void expect_terms(const SymbolicMemory& memory, std::size_t rank, uint32_t p) {
    const Term value = staged_term(initial_main_term(GatherBench::kSeed, p), DType::bf16);
    const QuantizedWeight& w = bench.ranks[rank].weights[p];
    const View<real> whole = bench.param_view(rank, p);
    const bool mxfp8 = bench.params[p].mxfp8;
    EXPECT_EQ(memory.digest(whole).term, mxfp8 && shares(rank) ? kZeroTerm : value);
    if (!mxfp8) return;
    const auto term = [value](Plane plane) { return quantized_term(value, plane, ScaleRounding::up); };
    EXPECT_EQ(memory.digest(w.rowwise).term, term(Plane::rowwise));
    EXPECT_EQ(memory.digest(w.rowwise_scale).term, term(Plane::rowwise_scale));
    EXPECT_EQ(memory.digest(w.columnwise).term, term(Plane::columnwise));
    EXPECT_EQ(memory.digest(w.columnwise_scale).term, term(Plane::columnwise_scale));
  }
  void expect_numbers(const HostMemory& memory, std::size_t rank, uint32_t p) {
    const std::vector<bf16> values = bench.initial(p);
    const View<real> whole = bench.param_view(rank, p);
    const BenchParam& info = bench.params[p];
    const std::vector<bf16> zeros(values.size(), bf16{});
    const bool clear = info.mxfp8 && shares(rank);
    EXPECT_EQ(std::memcmp(memory.data(whole), clear ? zeros.data() : values.data(), whole.bytes), 0);
    if (!info.mxfp8) return;
    const QuantizedWeight& w = bench.ranks[rank].weights[p];
    std::vector<e4m3> data(values.size());
    std::vector<e8m0> scales(values.size() / 32);
    mx_quantize_rowwise(values.data(), info.rows, info.cols, ScaleRounding::up, data.data(), scales.data());
    EXPECT_EQ(std::memcmp(memory.data(w.rowwise), data.data(), data.size()), 0);
    EXPECT_EQ(std::memcmp(memory.data(w.rowwise_scale), scales.data(), scales.size()), 0);
    mx_quantize_columnwise(values.data(), info.rows, info.cols, ScaleRounding::up, data.data(),
                           scales.data());
    EXPECT_EQ(std::memcmp(memory.data(w.columnwise), data.data(), data.size()), 0);
    EXPECT_EQ(std::memcmp(memory.data(w.columnwise_scale), scales.data(), scales.size()), 0);
  }
  bool shares(std::size_t rank) const { return bench.ranks[rank].buffers[0].shared; }

  std::vector<std::unique_ptr<ParamGather>> gathers_;
};

class ParamGatherCases : public testing::TestWithParam<Case> {
 protected:
  // Without what this case does not launch: gathers on one rank, zeroing of a buffer that is not shared.
  Names expected(Names names) const {
    std::erase_if(names, [](const std::string& name) {
      return (GetParam().ranks == 1 && name.starts_with("all_gather")) ||
             (!GetParam().share && name.starts_with("zero_param_range"));
    });
    return names;
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const MemoryKind memory : {MemoryKind::symbolic, MemoryKind::host})
    for (const int ranks : {1, 2, 3})
      for (const bool share : {true, false})
        for (const DType dtype : {DType::f32, DType::bf16}) all.push_back({memory, ranks, share, dtype});
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, ParamGatherCases, testing::ValuesIn(cases()), [](const auto& test) {
  const Case& c = test.param;
  return std::string(c.memory == MemoryKind::symbolic ? "symbolic" : "host") + std::to_string(c.ranks) +
         (c.share ? "shared" : "apart") + name_of(c.grad_dtype);
});

// All bf16 buckets ride in the last group, which comes first; each group's successor is under way before its
// own post-processing.
TEST_P(ParamGatherCases, ForwardInRegistrationOrder) {
  Gathers g(options_of(GetParam()));
  g.stage();
  EXPECT_EQ(g.hook({0}), expected({"all_gather:2", "all_gather:3", "all_gather:4", "all_gather:5",
                                   "all_gather:1", "quantize:1", "zero_param_range:2"}));
  EXPECT_EQ(g.hook({1}), Names{});
  EXPECT_EQ(g.hook({2}), expected({"all_gather:0", "quantize:2", "zero_param_range:1"}));
  EXPECT_EQ(g.hook({3}), Names{});
  EXPECT_EQ(g.hook({4, 5}), expected({"quantize:4", "zero_param_range:0"}));
  g.expect_current();
  EXPECT_EQ(g.hook({0, 1, 2, 3, 4, 5}), Names{}) << "every group is finished";
  g.stage();
  EXPECT_EQ(g.hook({0, 1, 2, 3, 4, 5}),
            expected({"all_gather:2", "all_gather:3", "all_gather:4", "all_gather:5", "all_gather:1",
                      "quantize:1", "zero_param_range:2", "all_gather:0", "quantize:2", "zero_param_range:1",
                      "quantize:4", "zero_param_range:0"}));
  g.expect_current();
}

TEST_P(ParamGatherCases, ParamsUsedOutOfRegistrationOrder) {
  Gathers g(options_of(GetParam()));
  g.stage();
  EXPECT_EQ(g.hook({4}), expected({"all_gather:0", "quantize:4", "zero_param_range:0"}));
  EXPECT_EQ(g.hook({2}), expected({"all_gather:1", "quantize:2", "zero_param_range:1"}));
  EXPECT_EQ(g.hook({5}), expected({"all_gather:2", "all_gather:3", "all_gather:4", "all_gather:5",
                                   "quantize:1", "zero_param_range:2"}));
  g.expect_current();
}

TEST_P(ParamGatherCases, ForcedSyncGathersAllAndLeavesNothingToHooks) {
  for (const bool overlap : {true, false}) {
    Gathers g(options_of(GetParam()), overlap);
    g.stage();
    const Names names = g.run([](ParamGather& gather) {
      gather.disable_forward_pre_hook();
      gather.force_param_sync();
      gather.enable_forward_pre_hook();
    });
    EXPECT_EQ(names, expected({"all_gather:2", "all_gather:3", "all_gather:4", "all_gather:5", "quantize:1",
                               "zero_param_range:2", "all_gather:1", "quantize:2", "zero_param_range:1",
                               "all_gather:0", "quantize:4", "zero_param_range:0"}));
    EXPECT_EQ(g.hook({0, 1, 2, 3, 4, 5}), Names{});
    g.expect_current();
  }
}

TEST_P(ParamGatherCases, GathersRunOnTheCommunicationStream) {
  Gathers g(options_of(GetParam()));
  g.stage();
  g.hook({0, 2, 4});
  for (const OpLog::Entry& e : g.bench.log.entries) {
    const Streams& streams = g.bench.ranks[static_cast<std::size_t>(e.rank)].streams;
    EXPECT_EQ(e.stream, e.type == &op_type<AllGather>() ? streams.comm : streams.compute) << e.name;
  }
  EXPECT_EQ(g.bench.log.count<QuantizeWeight>(), 3u * g.bench.ranks.size());
}

// Whatever a drain prefers, events keep the order of staging, gather and quantize.
TEST_P(ParamGatherCases, EventsOrderTheGatherOnEverySchedule) {
  for (const Schedule schedule : {Schedule::reverse, Schedule::random, Schedule::pct}) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      GatherBenchOptions options = options_of(GetParam());
      options.world.schedule = schedule;
      options.world.schedule_seed = seed;
      Gathers g(options);
      g.stage({0, 1, 2, 3, 4, 5});
      EXPECT_EQ(g.bench.log.count<QuantizeWeight>(), 3u * g.bench.ranks.size());
      g.expect_current();
    }
  }
}

class ParamGatherSmall : public BothMemories {
 protected:
  GatherBenchOptions two_ranks() const {
    GatherBenchOptions result;
    result.world = options(2);
    return result;
  }
};
INSTANTIATE_TEST_SUITE_P(Memories, ParamGatherSmall, kBothMemories, memory_name);

// Group 1 is under way when the sync comes. Apart, as in shared memory group 2's range is clear by then.
TEST_P(ParamGatherSmall, ForcedSyncFinishesWhatIsUnderWay) {
  GatherBenchOptions options = two_ranks();
  options.share = false;
  Gathers g(options);
  g.stage();
  g.hook({0});
  const Names names = g.run([](ParamGather& gather) { gather.force_param_sync(); });
  EXPECT_EQ(std::count(names.begin(), names.end(), "all_gather:1"), 0);
  EXPECT_EQ(std::count(names.begin(), names.end(), "all_gather:0"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "quantize:2"), 1);
  g.expect_current();
}

TEST_P(ParamGatherSmall, HooksDoNothingWhenOffOrWithoutOverlap) {
  Gathers off(two_ranks());
  off.stage();
  off.run([](ParamGather& gather) { gather.disable_forward_pre_hook(); });
  EXPECT_EQ(off.hook({0, 1, 2, 3, 4, 5}), Names{});
  off.run([](ParamGather& gather) { gather.enable_forward_pre_hook(); });
  EXPECT_FALSE(off.hook({0}).empty());
  Gathers without(two_ranks(), false);
  without.stage();
  EXPECT_EQ(without.hook({0, 1, 2, 3, 4, 5}), Names{});
}

TEST_P(ParamGatherSmall, AReplayLeavesEveryGroupFinished) {
  Gathers g(two_ranks());
  g.stage();
  g.hook({0});
  g.run([](ParamGather& gather) { gather.mark_all_finished(); });
  EXPECT_EQ(g.hook({0, 1, 2, 3, 4, 5}), Names{});
  g.stage();
  EXPECT_FALSE(g.hook({4}).empty());
}

// Without MXFP8 params each bucket is a group, and nothing follows its gather.
TEST_P(ParamGatherSmall, WholeParamsAloneAreGatheredBucketByBucket) {
  GatherBenchOptions options = two_ranks();
  options.params = {{5, 8}, {1, 64}, {7, 32}};
  Gathers g(options);
  g.stage();
  EXPECT_EQ(g.hook({0}), (Names{"all_gather:2", "all_gather:1"}));
  EXPECT_EQ(g.hook({1}), Names{"all_gather:0"});
  EXPECT_EQ(g.hook({2}), Names{});
  g.expect_current();
}

// Several params a bucket, of which one lies over a shard boundary: each is quantized, the range is cleared
// once.
TEST_P(ParamGatherSmall, ABucketOfSeveralParamsIsClearedOnce) {
  GatherBenchOptions options = two_ranks();
  options.rule = {};
  Gathers g(options);
  g.stage();
  EXPECT_EQ(g.hook({4}), (Names{"all_gather:0", "all_gather:1", "quantize:4", "quantize:2", "quantize:1",
                                "zero_param_range:0"}));
  g.expect_current();
}

}  // namespace
}  // namespace gatherfuzz
