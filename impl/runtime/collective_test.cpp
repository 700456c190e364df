// Collectives on both memories against plain loops and against the algebra of terms: rules 55 to 57.
#include "impl/runtime/collective.h"

#include <cmath>
#include <limits>

#include "impl/runtime/local/world_for_tests.h"

namespace gatherfuzz {
namespace {

constexpr int kWorldSizes[] = {1, 2, 3, 5, 8};

class CollectiveTest : public BothMemories {};
INSTANTIATE_TEST_SUITE_P(Memories, CollectiveTest, kBothMemories, memory_name);

// rule 55, rule 57: shard r of every rank becomes rank r's; nothing else changes
TEST_P(CollectiveTest, AllGatherInPlace) {
  for (const int ranks : kWorldSizes) {
    World world(options(ranks));
    const auto n = static_cast<uint32_t>(ranks);
    View<float> x;
    world.run([&](Runtime& rt) {
      x = floats(rt, 3 * n + 4);
      rt.launch(0, SetTo{x, 100 + rt.rank()});
      rt.launch(0, all_gather_in_place(x.slice(2, 3 * n), rt.rank(), ranks));
    });
    for (int r = 0; r < ranks; ++r) {
      for (uint32_t shard = 0; shard < n; ++shard)
        for (uint32_t i = 0; i < 3; ++i)
          if (GetParam() == MemoryKind::host)
            EXPECT_TRUE(holds(world, r, x.slice(2 + 3 * shard + i, 1), 100 + static_cast<int>(shard)));
          else
            EXPECT_EQ(
                world.symbolic()[static_cast<std::size_t>(r)].digest(x.slice(2 + 3 * shard + i, 1)).term,
                mix(integer_term(100 + static_cast<int>(shard)), (2 + 3 * shard + i) * 4));
      EXPECT_TRUE(holds(world, r, x.slice(0, 2), 100 + r));
      EXPECT_TRUE(holds(world, r, x.slice(2 + 3 * n, 2), 100 + r));
    }
  }
}

// rule 55, rule 57
TEST_P(CollectiveTest, ReduceScatterWritesTheOwnShardOnly) {
  for (const int ranks : kWorldSizes) {
    World world(options(ranks));
    const auto n = static_cast<uint32_t>(ranks);
    View<float> x;
    world.run([&](Runtime& rt) {
      x = floats(rt, 3 * n);
      rt.launch(0, SetTo{x, 1 << rt.rank()});
      rt.launch(0, reduce_scatter_in_place(x, rt.rank(), ranks, Reduction::sum));
    });
    for (int r = 0; r < ranks; ++r)
      for (uint32_t shard = 0; shard < n; ++shard) {
        const bool own = shard == static_cast<uint32_t>(r);
        EXPECT_TRUE(holds(world, r, x.slice(3 * shard, 3), own ? (1 << ranks) - 1 : 1 << r))
            << ranks << " " << r;
      }
  }
}

TEST_P(CollectiveTest, AllReduceSumsEachElementOnEveryRank) {
  for (const int ranks : kWorldSizes) {
    World world(options(ranks));
    View<float> x;
    world.run([&](Runtime& rt) {
      x = floats(rt, 6);
      rt.launch(0, SetTo{x.slice(0, 2), 1 << rt.rank()});
      if (rt.rank() % 2 == 0) rt.launch(0, SetTo{x.slice(2, 2), 3});
      AllReduce op;
      op.values = View<raw>(x);
      op.count = 6;
      rt.launch(0, op);
    });
    for (int r = 0; r < ranks; ++r) {
      EXPECT_TRUE(holds(world, r, x.slice(0, 2), (1 << ranks) - 1));
      EXPECT_TRUE(holds(world, r, x.slice(2, 2), 3 * ((ranks + 1) / 2)));
      EXPECT_TRUE(holds(world, r, x.slice(4, 2), 0));
    }
  }
}

// rule 57: one rank changes nothing
TEST_P(CollectiveTest, OneRankKeepsItsContent) {
  World world(options());
  std::vector<uint64_t> before;
  View<float> x;
  world.run([&](Runtime& rt) {
    x = floats(rt, 8, Fill::uninitialized);
    rt.launch(0, SetTo{x.slice(0, 3), 5});
    rt.launch(0, SetTo{x.slice(3, 2), 7});
    rt.synchronize_stream(0);
    before = contents(world, 0, x);
    rt.launch(0, all_gather_in_place(x, 0, 1));
    for (const Reduction reduction : {Reduction::sum, Reduction::average}) {
      rt.launch(0, reduce_scatter_in_place(x, 0, 1, reduction));
      AllReduce op;
      op.values = View<raw>(x);
      op.count = 8;
      op.reduction = reduction;
      rt.launch(0, op);
    }
  });
  EXPECT_EQ(contents(world, 0, x), before);
  EXPECT_EQ(world.ops_executed(), 3u + 4u);
}

// rule 56
TEST_P(CollectiveTest, NoElementsIsNothingAtAll) {
  World world(options(2));
  world.run([&](Runtime& rt) {
    const View<float> none;
    rt.launch(0, all_gather_in_place(none, rt.rank(), 2));
    rt.launch(0, reduce_scatter_in_place(none, rt.rank(), 2, Reduction::sum));
    rt.launch(0, AllReduce{});
    const StreamId s = rt.create_stream("s");
    rt.begin_capture(s);
    rt.launch(s, AllReduce{});
    rt.end_capture(s);
  });
  EXPECT_EQ(world.ops_executed(), 0u);
  EXPECT_TRUE(world.graphs(0).at(0)->nodes.empty());
}

// rule 55: the layout of shards
TEST(CollectiveLayoutTest, PiecesOfABucket) {
  const View<bf16> bucket = make_view<bf16>(1, 10, 12);
  const AllGather gather = all_gather_in_place(bucket, 1, 3);
  EXPECT_EQ(gather.count, 4);
  EXPECT_EQ(gather.before.begin, 10u);
  EXPECT_EQ(gather.own.begin, 10u + 8);
  EXPECT_EQ(gather.own.bytes, 8u);
  EXPECT_EQ(gather.after.begin, 10u + 16);
  EXPECT_EQ(gather.after.end(), bucket.end());
  EXPECT_TRUE(all_gather_in_place(bucket, 0, 3).before.empty());
  EXPECT_TRUE(reduce_scatter_in_place(bucket, 2, 3, Reduction::sum).after.empty());
  std::string text;
  EXPECT_EQ(error_of([&] { all_gather_in_place(bucket, 0, 5); }, &text), Error::invalid_value);
  EXPECT_EQ(text, "cudaErrorInvalidValue: a bucket of 12 elements does not divide into 5 shards");
  EXPECT_EQ(error_of([&] { reduce_scatter_in_place(bucket, 0, 7, Reduction::sum); }), Error::invalid_value);
}

float pattern(int rank, uint32_t i) {
  return std::ldexp(1.0f + static_cast<float>((rank * 37 + i * 11) % 64) / 64, rank - 3);
}

template <class T>
T narrow(float value) {
  if constexpr (std::is_same_v<T, bf16>)
    return to_bf16(value);
  else
    return value;
}
template <class T>
float widen(T value) {
  if constexpr (std::is_same_v<T, bf16>)
    return to_float(value);
  else
    return value;
}

// Ascending rank order in FP32, rounded once: compared bit by bit with plain loops.
template <class T>
void check_reduce_scatter(int ranks, Reduction reduction) {
  const auto n = static_cast<uint32_t>(ranks) * 5;
  std::vector<HostMemory> memories;
  std::vector<ReduceScatter> ops;
  std::vector<const void*> pointers;
  const View<T> bucket = make_view<T>(1, 8, n);
  for (int r = 0; r < ranks; ++r) {
    memories.emplace_back(r).allocate(8 + n * 4, true);
    for (uint32_t i = 0; i < n; ++i) memories.back().template out<T>(bucket)[i] = narrow<T>(pattern(r, i));
    ops.push_back(reduce_scatter_in_place(bucket, r, ranks, reduction));
  }
  for (const ReduceScatter& op : ops) pointers.push_back(&op);
  ReduceScatter::host_collective(pointers, memories);
  for (int r = 0; r < ranks; ++r)
    for (uint32_t i = 0; i < n; ++i) {
      float expected = widen(narrow<T>(pattern(r, i)));
      if (i / 5 == static_cast<uint32_t>(r)) {
        const float factor = reduction == Reduction::average ? 1.0f / static_cast<float>(ranks) : 1.0f;
        expected = widen(narrow<T>(pattern(0, i))) * factor;
        for (int from = 1; from < ranks; ++from) {
          const float value = widen(narrow<T>(pattern(from, i))) * factor;
          expected = reduction == Reduction::max ? std::fmax(expected, value) : expected + value;
        }
        expected = widen(narrow<T>(expected));
      }
      ASSERT_EQ(widen(memories[static_cast<std::size_t>(r)].template in<T>(bucket)[i]), expected)
          << ranks << " " << r;
    }
}

TEST(HostCollectiveTest, ReduceScatterAgainstLoops) {
  for (const int ranks : kWorldSizes)
    for (const Reduction reduction : {Reduction::sum, Reduction::average, Reduction::max}) {
      check_reduce_scatter<float>(ranks, reduction);
      check_reduce_scatter<bf16>(ranks, reduction);
    }
}

// 256 + 1 + 1 rounds to 258 once, but stays at 256 if every sum is rounded to bf16; 2^24 + 1 - 2^24 tells the
// order.
TEST(HostCollectiveTest, RoundsOnceInAscendingOrder) {
  const auto reduce = [](std::vector<float> values, DType dtype) {
    std::vector<HostMemory> memories;
    std::vector<ReduceScatter> ops;
    std::vector<const void*> pointers;
    const auto ranks = static_cast<int>(values.size());
    const View<real> bucket = make_real_view(1, 0, static_cast<uint32_t>(ranks), dtype);
    for (int r = 0; r < ranks; ++r) {
      memories.emplace_back(r).allocate(64, true);
      const std::vector<float> row(values.size(), values[static_cast<std::size_t>(r)]);
      memories.back().store(bucket, row.data());
      ops.push_back(reduce_scatter_in_place(bucket, r, ranks, Reduction::sum));
    }
    for (const ReduceScatter& op : ops) pointers.push_back(&op);
    ReduceScatter::host_collective(pointers, memories);
    return memories[0].load(ops[0].own)[0];
  };
  EXPECT_EQ(reduce({256, 1, 1}, DType::bf16), 258.0f);
  EXPECT_EQ(reduce({0x1p24f, 1, -0x1p24f}, DType::f32), 0.0f);
  EXPECT_EQ(reduce({0x1p24f, -0x1p24f, 1}, DType::f32), 1.0f);
}

TEST(HostCollectiveTest, AllReduceOfCountsIsExactAndMaxKeepsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int bad : {-1, 0, 1, 2}) {
    std::vector<HostMemory> memories;
    std::vector<AllReduce> counts(3), flags(3);
    std::vector<const void*> count_ops, flag_ops;
    for (int r = 0; r < 3; ++r) {
      memories.emplace_back(r).allocate(32, true);
      counts[static_cast<std::size_t>(r)] = {make_view<uint64_t>(1, 0, 2), 2, Reduction::sum};
      flags[static_cast<std::size_t>(r)] = {make_view<float>(1, 16, 1), 1, Reduction::max};
      memories.back().out<uint64_t>(counts[0].values)[1] = (uint64_t{1} << 53) + static_cast<uint64_t>(r);
      *memories.back().out<float>(flags[0].values) = r == bad ? nan : static_cast<float>(r);
    }
    for (std::size_t r = 0; r < 3; ++r) {
      count_ops.push_back(&counts[r]);
      flag_ops.push_back(&flags[r]);
    }
    AllReduce::host_collective(count_ops, memories);
    AllReduce::host_collective(flag_ops, memories);
    for (const HostMemory& memory : memories) {
      EXPECT_EQ(memory.in<uint64_t>(counts[0].values)[0], 0u);
      EXPECT_EQ(memory.in<uint64_t>(counts[0].values)[1], 3 * (uint64_t{1} << 53) + 3);
      const float max = *memory.in<float>(flags[0].values);
      EXPECT_TRUE(bad < 0 ? max == 2.0f : std::isnan(max)) << bad;
    }
  }
}

// Terms of rank r's shard after a reduce-scatter of terms that are given by rank.
struct SymbolicRanks {
  explicit SymbolicRanks(int ranks) {
    for (int r = 0; r < ranks; ++r) memories.emplace_back(r).allocate(kBytes, true);
  }
  void scatter(Reduction reduction) {
    std::vector<ReduceScatter> ops;
    std::vector<const void*> pointers;
    const int ranks = static_cast<int>(memories.size());
    for (int r = 0; r < ranks; ++r) ops.push_back(reduce_scatter_in_place(bucket(), r, ranks, reduction));
    for (const ReduceScatter& op : ops) pointers.push_back(&op);
    ReduceScatter::symbolic_collective(pointers, memories);
  }
  void scale(float factor) {
    for (SymbolicMemory& memory : memories)
      transform_in_place(memory, bucket(), [&](Segment& s) { s.term *= scale_term(factor); });
  }
  void gather() {
    std::vector<AllGather> ops;
    std::vector<const void*> pointers;
    const int ranks = static_cast<int>(memories.size());
    for (int r = 0; r < ranks; ++r) ops.push_back(all_gather_in_place(bucket(), r, ranks));
    for (const AllGather& op : ops) pointers.push_back(&op);
    AllGather::symbolic_collective(pointers, memories);
  }
  View<float> bucket() const { return make_view<float>(1, 0, kBytes / 4); }
  static constexpr uint32_t kBytes = 4 * 3 * 5 * 8;
  std::vector<SymbolicMemory> memories;
};

TEST(SymbolicCollectiveTest, ScaleBeforeSumEqualsAverageAndTwiceOrNeverDiffers) {
  for (const int ranks : {2, 3, 5, 8}) {
    const auto outcome = [&](int scales, Reduction reduction) {
      SymbolicRanks world(ranks);
      for (int r = 0; r < ranks; ++r)
        world.memories[static_cast<std::size_t>(r)].assign(world.bucket(),
                                                           mix(term_of("grad"), static_cast<Term>(r)));
      for (int i = 0; i < scales; ++i) world.scale(1.0f / static_cast<float>(ranks));
      world.scatter(reduction);
      world.gather();
      // Shards gathered from all ranks are one run of one term.
      EXPECT_EQ(world.memories[0].segments(1).size(), 1u);
      return world.memories[0].digest(world.bucket()).term;
    };
    const Term average = outcome(0, Reduction::average);
    EXPECT_EQ(outcome(1, Reduction::sum), average);
    EXPECT_NE(outcome(0, Reduction::sum), average);
    EXPECT_NE(outcome(2, Reduction::sum), average);
    EXPECT_NE(outcome(1, Reduction::average), average);
  }
}

TEST(SymbolicCollectiveTest, SumsOfPiecesAddWherePositionsAgree) {
  SymbolicRanks world(2);
  const View<float> half = world.bucket().slice(0, 30);
  world.memories[0].assign(half, 10);
  world.memories[1].assign(half.slice(0, 10), 5);
  world.memories[1].assign(half.slice(10, 10), 5);  // its own offset 0: misaligned
  world.scatter(Reduction::sum);
  const SymbolicMemory& own = world.memories[0];
  EXPECT_EQ(own.digest(half.slice(0, 10)).term, 15u);
  EXPECT_EQ(own.digest(half.slice(20, 10)).term, mix(10, 80)) << "plus zero";
  const Term misaligned = own.digest(half.slice(10, 10)).term;
  for (const Term good : {mix(15, 40), mix(10, 40), Term{15}, Term{10}, Term{5}}) EXPECT_NE(misaligned, good);
}

TEST(SymbolicCollectiveTest, UninitializedDoesNotAdd) {
  SymbolicRanks world(2);
  world.memories[0].assign(world.bucket(), 10);
  world.memories[1].assign(world.bucket(), kUninitialized);
  world.scatter(Reduction::sum);
  const Term sum = world.memories[0].digest(world.bucket().slice(0, 60)).term;
  for (const Term good : {Term{10}, Term{10} + kUninitialized, kUninitialized, kZeroTerm})
    EXPECT_NE(sum, good);
}

TEST(SymbolicCollectiveTest, TaintOfAnyRankArrives) {
  for (int bad = 0; bad < 3; ++bad) {
    SymbolicRanks world(3);
    world.memories[static_cast<std::size_t>(bad)].assign(world.bucket().slice(25, 1), 10, kNoLabel, 1);
    world.scatter(Reduction::sum);
    const auto shard = [&](uint32_t r) { return world.bucket().slice(r * 40, 40); };
    EXPECT_TRUE(world.memories[0].tainted(shard(0)));
    EXPECT_FALSE(world.memories[1].tainted(shard(1)));
    EXPECT_FALSE(world.memories[0].tainted(shard(0).slice(0, 25)));
  }
}

TEST(SymbolicCollectiveTest, MaximumDependsOnNeitherOrderNorNumber) {
  const auto maximum = [](std::vector<Term> terms) {
    std::vector<SymbolicMemory> memories;
    std::vector<AllReduce> ops(terms.size());
    std::vector<const void*> pointers;
    for (std::size_t r = 0; r < terms.size(); ++r) {
      memories.emplace_back(static_cast<int>(r)).allocate(16, true);
      ops[r] = {make_view<float>(1, 4, 1), 1, Reduction::max};
      memories[r].assign(ops[r].values, terms[r], kNoLabel, terms[r] == 9 ? 1 : 0);
      pointers.push_back(&ops[r]);
    }
    AllReduce::symbolic_collective(pointers, memories);
    const Digest digest = memories.back().digest(ops[0].values);
    EXPECT_EQ(digest.term, memories[0].digest(ops[0].values).term);
    EXPECT_EQ(digest.taint != 0, std::find(terms.begin(), terms.end(), Term{9}) != terms.end());
    return digest.term;
  };
  EXPECT_EQ(maximum({4, 4, 4}), 4u);
  EXPECT_EQ(maximum({0, 0}), 0u);
  EXPECT_EQ(maximum({1, 2, 9}), maximum({9, 1, 2}));
  EXPECT_EQ(maximum({1, 1, 2}), maximum({2, 1}));
  EXPECT_NE(maximum({1, 2}), maximum({1, 9}));
  EXPECT_NE(maximum({0, 2}), 2u);
}

}  // namespace
}  // namespace gatherfuzz
