// Ranks with buffers, quantized weights and main params, but no model, for the tests of gather and gradient
// sync; and a log of the ops that they execute.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "impl/kernels/main_params.h"
#include "impl/param_gather/param_gather.h"
#include "impl/runtime/local/world.h"

namespace gatherfuzz {

// What was executed, rank by rank, as "name:n" where n is the parameter or bucket of the op's first operand
// that names one.
class OpLog : public Observer {
 public:
  struct Entry {
    std::string name;
    const OpType* type = nullptr;
    std::vector<std::byte> op;
    int rank = 0;
    StreamId stream = 0;
    GraphId graph = 0;
  };
  std::vector<Entry> entries;

  void before(const OpRef& ref) override {
    entries.push_back(
        {text_of(ref), ref.type, {ref.op, ref.op + ref.type->size}, ref.rank, ref.stream, ref.graph});
  }
  void after(const OpRef&) override {}
  void mark(int, const Mark&) override {}

  std::vector<std::string> of(int rank) const {
    std::vector<std::string> names;
    for (const Entry& e : entries)
      if (e.rank == rank) names.push_back(e.name);
    return names;
  }
  // Entries of one kind of op, on all ranks.
  template <class Op>
  std::vector<Op> all() const {
    std::vector<Op> ops;
    for (const Entry& e : entries)
      if (e.type == &op_type<Op>()) std::memcpy(&ops.emplace_back(), e.op.data(), sizeof(Op));
    return ops;
  }
  template <class Op>
  std::size_t count() const {
    return all<Op>().size();
  }

 private:
  static std::string text_of(const OpRef& ref) {
    std::string text = ref.type->name;
    for (const OperandField& field : ref.type->operands) {
      const auto& operand = *reinterpret_cast<const Operand*>(ref.op + field.offset);
      if (operand.tag != 0) return text + ":" + std::to_string(operand.tag - 1);
    }
    return text;
  }
};

struct BenchParam {
  int rows = 1;
  int cols = 1;
  bool mxfp8 = false;

  uint32_t size() const { return static_cast<uint32_t>(rows * cols); }
};

// Three MXFP8 params among three whole ones. With a bucket for each param, the MXFP8 buckets 0, 1, 2 hold
// params 4, 2, 1 and the bf16 buckets 3, 4, 5 hold params 5, 3, 0.
inline std::vector<BenchParam> six_params() {
  return {{5, 8}, {32, 32, true}, {64, 32, true}, {1, 64}, {32, 64, true}, {7, 32}};
}

struct GatherBenchOptions {
  WorldOptions world;
  std::vector<BenchParam> params = six_params();
  BucketRule rule{1, std::nullopt};
  bool share = true;
  DType grad_dtype = DType::f32;
};

class GatherBench {
 public:
  static constexpr uint64_t kSeed = 77;
  static constexpr float kDeviation = 0.5f;

  struct Rank {
    Streams streams;
    std::vector<BufferPair> buffers;
    std::vector<QuantizedWeight> weights;
    std::vector<View<float>> mains;  // this rank's shard of each bucket, by the bucket's number
  };

  explicit GatherBench(const GatherBenchOptions& options)
      : params(options.params), world(options.world), ranks(static_cast<std::size_t>(options.world.ranks)) {
    world.run([&](Runtime& runtime) { set_up(runtime, options); });
    world.set_observer(&log);
  }

  // Runs host code on every rank; the log then holds what it executed.
  void run(const std::function<void(Runtime&, std::size_t)>& body) {
    log.entries.clear();
    world.run([&](Runtime& runtime) { body(runtime, static_cast<std::size_t>(runtime.rank())); });
  }

  // Every rank's shards, rounded into the param buffers.
  void stage(Runtime& runtime) {
    Rank& r = ranks[static_cast<std::size_t>(runtime.rank())];
    for_each_bucket(runtime, r, [&](const BufferPair& pair, uint32_t bucket, uint32_t first, uint32_t n) {
      runtime.launch(r.streams.compute,
                     CopyMainParams{r.mains[pair.first_bucket + bucket], pair.param_view(first, n)});
    });
  }

  View<real> param_view(std::size_t rank, uint32_t param) const {
    for (const BufferPair& pair : ranks[rank].buffers)
      for (const ParamSlot& slot : pair.layout.slots)
        if (slot.param == param) return pair.param_view(slot.begin, slot.count);
    ADD_FAILURE() << "no param " << param;
    return {};
  }
  std::vector<bf16> initial(uint32_t param) const {
    std::vector<bf16> values;
    for (uint32_t i = 0; i < params[param].size(); ++i)
      values.push_back(to_bf16(initial_value(kSeed, param, i, kDeviation, 0.0f)));
    return values;
  }

  std::vector<BenchParam> params;
  OpLog log;
  World world;
  std::vector<Rank> ranks;

 private:
  template <class F>
  static void for_each_bucket(const Runtime& runtime, const Rank& rank, F&& f) {
    const auto size = static_cast<uint32_t>(runtime.world_size());
    for (const BufferPair& pair : rank.buffers) {
      for (uint32_t b = 0; b < pair.layout.buckets.size(); ++b) {
        const uint32_t n = pair.layout.buckets[b].count() / size;
        f(pair, b, pair.layout.buckets[b].begin + static_cast<uint32_t>(runtime.rank()) * n, n);
      }
    }
  }

  void set_up(Runtime& runtime, const GatherBenchOptions& options) {
    Rank& r = ranks[static_cast<std::size_t>(runtime.rank())];
    r.streams = {runtime.create_stream("compute"), runtime.create_stream("comm")};
    ParamBufferPlan plan;
    plan.rule = options.rule;
    plan.share_mxfp8 = options.share;
    plan.grad_dtype = options.grad_dtype;
    for (uint32_t p = 0; p < params.size(); ++p)
      (params[p].mxfp8 ? plan.mxfp8 : plan.whole).push_back({p, params[p].size()});
    r.buffers = make_buffers(runtime, plan);
    for (uint32_t p = 0; p < params.size(); ++p)
      r.weights.push_back(params[p].mxfp8 ? allocate_weight(runtime, p) : QuantizedWeight{});
    for_each_bucket(runtime, r, [&](const BufferPair& pair, uint32_t bucket, uint32_t, uint32_t n) {
      r.mains.push_back(make_view<float>(runtime.allocate("main", n * 4, Fill::zero), 0, n));
      const auto rank = static_cast<uint32_t>(runtime.rank());
      for (const ShardPiece& piece :
           shard_pieces(pair.layout, bucket, rank, static_cast<uint32_t>(runtime.world_size())))
        runtime.launch(r.streams.compute,
                       InitMainParams{r.mains.back().slice(piece.in_shard, piece.count), kSeed, piece.param,
                                      piece.in_param, kDeviation, 0.0f});
    });
  }

  QuantizedWeight allocate_weight(Runtime& runtime, uint32_t param) const {
    const uint32_t n = params[param].size();
    const BufferId buffer = runtime.allocate("planes", 2 * n + n / 16, Fill::uninitialized);
    QuantizedWeight w;
    w.rowwise = make_view<e4m3>(buffer, 0, n).tagged(param);
    w.columnwise = make_view<e4m3>(buffer, n, n).tagged(param);
    w.rowwise_scale = make_view<e8m0>(buffer, 2 * n, n / 32).tagged(param);
    w.columnwise_scale = make_view<e8m0>(buffer, 2 * n + n / 32, n / 32).tagged(param);
    w.rows = params[param].rows;
    w.cols = params[param].cols;
    return w;
  }
};

}  // namespace gatherfuzz
