// Collectives with one rank and with several: rules 48, 49 and 54 to 57.
#include <thread>

#include "impl/runtime/collective.h"
#include "properties/conformance/trial.h"

namespace gatherfuzz {

namespace {

// A bucket of one element a rank; only the element of `rank` is set.
struct Bucket {
  explicit Bucket(Runtime& rt)
      : ranks(rt.world_size()),
        rank(rt.rank()),
        whole(make_view<float>(rt.allocate("bucket", 4u * static_cast<uint32_t>(ranks), Fill::zero), 0,
                               static_cast<uint32_t>(ranks))) {}

  View<float> shard(int r) const { return whole.slice(static_cast<uint32_t>(r), 1); }
  AllGather gather() const { return all_gather_in_place(whole, rank, ranks); }
  ReduceScatter scatter(Reduction how) const { return reduce_scatter_in_place(whole, rank, ranks, how); }

  int ranks, rank;
  View<float> whole;
};

AllReduce all_reduce(const View<float>& values, Reduction how) {
  AllReduce op;
  op.values = View<raw>(values);
  op.count = static_cast<int32_t>(values.count());
  op.reduction = how;
  return op;
}

void gather(Trial& t) {
  Runtime& rt = t.rt;
  const Bucket bucket(rt);
  const StreamId s = rt.create_stream("s");
  rt.launch(s, SetTo{bucket.shard(bucket.rank), 10 + bucket.rank});
  rt.launch(s, bucket.gather());
  for (int r = 0; r < bucket.ranks; ++r) t.holds(10 + r, "a shard", s, bucket.shard(r));
}

// Each rank brings rank + 1 for every shard; the shards of others keep what this rank brought.
void scatter(Trial& t) {
  Runtime& rt = t.rt;
  const Bucket bucket(rt);
  const StreamId s = rt.create_stream("s");
  const int total = bucket.ranks * (bucket.ranks + 1) / 2;
  rt.launch(s, SetTo{bucket.whole, bucket.rank + 1});
  rt.launch(s, bucket.scatter(Reduction::sum));
  for (int r = 0; r < bucket.ranks; ++r)
    t.holds(r == bucket.rank ? total : bucket.rank + 1, "a shard", s, bucket.shard(r));
}

void scatter_average(Trial& t) {
  Runtime& rt = t.rt;
  const Bucket bucket(rt);
  const StreamId s = rt.create_stream("s");
  rt.launch(s, SetTo{bucket.whole, 8 * bucket.ranks});
  rt.launch(s, bucket.scatter(Reduction::average));
  if (t.numbers() || bucket.ranks == 1)
    t.holds(8 * bucket.ranks, "the own shard", s, bucket.shard(bucket.rank));
}

void reduce(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> sum = t.value(), most = t.value();
  const StreamId s = rt.create_stream("s");
  rt.launch(s, SetTo{sum, rt.rank() + 1});
  rt.launch(s, SetTo{most, 5 - rt.rank()});
  rt.launch(s, all_reduce(sum, Reduction::sum));
  rt.launch(s, all_reduce(most, Reduction::max));
  t.holds(rt.world_size() * (rt.world_size() + 1) / 2, "the sum", s, sum);
  if (t.numbers() || rt.world_size() == 1) t.holds(5, "the maximum", s, most);
}

void in_a_graph(Trial& t) {
  Runtime& rt = t.rt;
  const Bucket bucket(rt);
  const View<float> sum = t.value();
  const StreamId s = rt.create_stream("s"), side = rt.create_stream("side");
  const EventId fork = rt.create_event(), join = rt.create_event();
  rt.begin_capture(s);
  rt.launch(s, AddTo{bucket.shard(bucket.rank), 1});
  rt.record(fork, s);
  rt.wait(side, fork);
  rt.launch(side, bucket.gather());
  rt.launch(side, all_reduce(sum, Reduction::sum));
  rt.record(join, side);
  rt.wait(s, join);
  rt.launch(s, AddTo{sum, 1});
  const GraphId graph = rt.end_capture(s);
  t.holds(0, "the sum, before any replay", s, sum);
  for (int replay = 1; replay <= 3; ++replay) {
    rt.launch_graph(s, graph);
    for (int r = 0; r < bucket.ranks; ++r) t.holds(replay, "a shard", s, bucket.shard(r));
  }
  int expected = 0;
  for (int replay = 0; replay < 3; ++replay) expected = expected * bucket.ranks + 1;
  t.holds(expected, "the sum", s, sum);
}

// Every rank waits for all, however late one is.
void waits_for_all(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s"), side = rt.create_stream("side");
  const EventId e = rt.create_event();
  for (int i = 0; i < 4 * rt.rank(); ++i) rt.launch(s, AddTo{x, 1});
  rt.record(e, s);
  rt.wait(side, e);
  rt.launch(side, all_reduce(x, Reduction::sum));
  const int ranks = rt.world_size();
  t.holds(2 * ranks * (ranks - 1), "the sum", side, x);
}

void no_elements(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  rt.launch(s, SetTo{x, 7});
  t.succeeds("an all-reduce of nothing", [&] { rt.launch(s, all_reduce(x.slice(0, 0), Reduction::sum)); });
  rt.begin_capture(s);
  t.succeeds("one in a capture", [&] { rt.launch(s, all_reduce(x.slice(0, 0), Reduction::sum)); });
  const GraphId graph = rt.end_capture(s);
  rt.launch_graph(s, graph);
  t.holds(7, "x", s, x);
}

void no_elements_on_one_rank(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  rt.launch(s, all_reduce(x.slice(0, rt.rank() == 0 ? 0 : 1), Reduction::sum));
}

void other_overlap(Trial& t) {
  Runtime& rt = t.rt;
  const Bucket bucket(rt);
  const StreamId s = rt.create_stream("s");
  const int other = (bucket.rank + 1) % bucket.ranks;
  AllGather gather = bucket.gather();
  static_cast<Operand&>(gather.own) = bucket.shard(other);
  t.fails(Error::nccl_invalid_usage, "an all-gather from another rank's shard",
          [&] { rt.launch(s, gather); });
  ReduceScatter scatter = bucket.scatter(Reduction::sum);
  static_cast<Operand&>(scatter.own) = bucket.shard(other);
  t.fails(Error::nccl_invalid_usage, "a reduce-scatter into another rank's shard",
          [&] { rt.launch(s, scatter); });
}

void two_threads(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  std::thread([&] {
    t.fails(Error::illegal_state, "a collective by a second thread",
            [&] { rt.launch(s, all_reduce(x, Reduction::sum)); });
  }).join();
}

void taking_turns(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  rt.launch(s, SetTo{x, 1});
  rt.on_host_thread(1);
  rt.launch(s, all_reduce(x, Reduction::sum));
  rt.on_host_thread(0);
  rt.launch(s, all_reduce(x, Reduction::sum));
  t.holds(rt.world_size() * rt.world_size(), "x", s, x);
}

void order_differs(Trial& t) {
  Runtime& rt = t.rt;
  const Bucket bucket(rt);
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  if (rt.rank() == 0) rt.launch(s, bucket.gather());
  rt.launch(s, all_reduce(x, Reduction::sum));
  if (rt.rank() != 0) rt.launch(s, bucket.gather());
}

void one_rank_in_a_graph(Trial& t) {
  Runtime& rt = t.rt;
  const View<float> x = t.value();
  const StreamId s = rt.create_stream("s");
  const bool captures = rt.rank() == 0;
  if (captures) rt.begin_capture(s);
  rt.launch(s, all_reduce(x, Reduction::sum));
  if (captures) rt.launch_graph(s, rt.end_capture(s));
}

}  // namespace

std::span<const Case> collective_cases() {
  using enum Case::Kind;
  static constexpr Case kCases[] = {
      {"rule 48", "the order of collectives differs", order_differs, deadlock, 2},
      {"rule 49", "one rank captures and the other does not", one_rank_in_a_graph, undefined_deadlock, 2},
      {"rule 49", "ranks replay collectives together", in_a_graph, same, 3},
      {"rule 54", "a communicator is used by two threads at once", two_threads, undefined},
      {"rule 54", "threads use a communicator in turns", taking_turns, same, 2},
      {"rule 55", "all-gather in place", gather, same, 3},
      {"rule 55", "reduce-scatter in place", scatter, same, 3},
      {"rule 55", "reduce-scatter in place, average of 4", scatter_average, same, 4},
      {"rule 55", "all-reduce in place", reduce, same, 2},
      {"rule 55", "a collective waits for the latest rank", waits_for_all, same, 3},
      {"rule 55", "any other overlap", other_overlap, undefined, 2},
      {"rule 56", "a collective of no elements does nothing", no_elements, same, 2},
      {"rule 56", "no elements on one rank only", no_elements_on_one_rank, deadlock, 2},
      {"rule 57", "one rank: all-gather", gather},
      {"rule 57", "one rank: reduce-scatter", scatter},
      {"rule 57", "one rank: average", scatter_average},
      {"rule 57", "one rank: all-reduce", reduce},
      {"rule 57", "one rank: in a graph", in_a_graph},
  };
  return kCases;
}

}  // namespace gatherfuzz
