// The coarse model is the fine one: same bytes computed, same bytes read and written, same summands reported.
#include "impl/model/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "impl/kernels/load_batch.h"
#include "impl/model/model_bench_for_tests.h"

namespace gatherfuzz {
namespace {

ModelConfig config_of(bool mx, bool mx_params) {
  ModelConfig config;
  config.hidden_size = config.ffn_hidden_size = 32;
  config.num_attention_heads = 2;
  config.vocab_size = 40;
  config.max_microbatches = 2;
  config.mx = mx;
  config.mx_params = mx_params;
  return config;
}
ModelConfig bf16_ends() {
  ModelConfig config = config_of(true, true);
  config.num_layers = 3;
  config.first_last_layers_bf16 = true;
  return config;
}
const ModelConfig kConfigs[] = {config_of(false, false), config_of(true, true), config_of(true, false),
                                bf16_ends()};

// By byte of a buffer: what a pass does to it. A byte that the pass wrote before reading it is not read.
enum : uint8_t { kReads = 1, kWrites = 2, kAccumulates = 4 };
using Footprint = std::map<std::pair<BufferId, uint32_t>, uint8_t>;

// The accesses of one op happen together: what it writes does not hide what it reads.
void add_op(Footprint& bytes, const std::vector<Access>& accesses) {
  Footprint written;
  for (const auto& [operand, field] : accesses)
    for (uint32_t byte = operand.begin; byte < operand.end(); ++byte) {
      const std::pair<BufferId, uint32_t> at{operand.buffer, byte};
      if (field.mode == Mode::read) {
        bytes.emplace(at, kReads);
      } else {
        written[at] |= field.mode == Mode::accumulate ? kAccumulates : kWrites;
      }
    }
  for (const auto& [at, how] : written) bytes[at] |= how;
}

class FootprintSink : public OpSink {
 public:
  void submit(const OpType& type, const void* op, Site) override {
    std::vector<Access> accesses;
    for_each_access(type, op, [&](const Operand& operand, const OperandField& field) {
      accesses.push_back({operand, field});
    });
    add_op(bytes, accesses);
  }
  Footprint bytes;
};

Footprint coarse_footprint(const std::function<void(OpSink&)>& pass) {
  CompositeRecorder recorder("pass");
  pass(recorder);
  const std::unique_ptr<Composite> composite = recorder.finish();
  EXPECT_LT(composite->accesses.size(), 64u);
  Footprint bytes;
  add_op(bytes, composite->accesses);
  return bytes;
}

TEST(Passes, CoarseFootprintIsTheFineOne) {
  for (const ModelConfig& config : kConfigs) {
    ModelBench bench(config, MemoryKind::symbolic);
    const Model& model = bench.model();
    for (int m = 0; m < model.modules(); ++m)
      for (const bool backward : {false, true}) {
        const auto pass = [&](OpSink& sink) {
          backward ? model.backward(sink, m, 1, 0.5f) : model.forward(sink, m, 1);
        };
        FootprintSink fine;
        pass(fine);
        EXPECT_GT(fine.bytes.size(), 1000u);
        EXPECT_EQ(coarse_footprint(pass), fine.bytes)
            << "module " << m << (backward ? " backward" : " forward");
      }
  }
}

std::vector<std::vector<std::byte>> all_bytes(ModelBench& bench) {
  std::vector<std::vector<std::byte>> bytes;
  for (const ParamBinding& param : bench.params()) bytes.push_back(bench.memory().save(param.main_grad));
  for (int slot = 0; slot < bench.model().slots(); ++slot)
    bytes.push_back(bench.memory().save(bench.model().loss(slot)));
  return bytes;
}

TEST(Passes, CoarseComputesTheSameBytes) {
  for (const ModelConfig& config : kConfigs) {
    std::vector<std::vector<std::byte>> results[2];
    for (const bool coarse : {false, true}) {
      ModelBench bench(config, MemoryKind::host);
      Passes passes(bench.model(), coarse);
      bench.set_weights(seeded_weights(config, 3));
      for (int slot = 0; slot < 2; ++slot) {
        const auto seed = static_cast<uint32_t>(slot);
        bench.set_batch(slot, seeded_tokens(config, seed), seeded_tokens(config, 10 + seed));
        bench.forward_backward(passes, slot, 0.5f);
      }
      results[coarse] = all_bytes(bench);
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_GT(results[0].size(), 15u);
  }
}

class Summands : public SummandListener {
 public:
  void summand(int, uint16_t tag, Label label, Term term) override {
    seen.emplace(tag, label);
    terms.insert(term);
  }
  std::multiset<std::pair<uint16_t, Label>> seen;
  std::set<Term> terms;
};

// Every parameter gets one summand a microbatch, labelled with that microbatch's data; all summands differ.
TEST(Passes, SymbolicSummandsNameParameterAndData) {
  for (const ModelConfig& config : kConfigs)
    for (const bool coarse : {false, true}) {
      ModelBench bench(config, MemoryKind::symbolic);
      Passes passes(bench.model(), coarse);
      Summands summands;
      bench.world().symbolic()[0].set_listener(&summands);
      std::multiset<std::pair<uint16_t, Label>> expected;
      for (int slot = 0; slot < 2; ++slot) {
        const LoadBatch load{bench.model().tokens(slot), bench.model().targets(slot), nullptr, 0, slot, 5,
                             config.seq_length};
        bench.run([&](Runtime& runtime) { runtime.launch(bench.stream(), load); });
        bench.forward_backward(passes, slot, 0.5f);
        for (std::size_t p = 1; p <= bench.params().size(); ++p)
          expected.emplace(static_cast<uint16_t>(p), make_label(0, static_cast<uint32_t>(slot), 5));
      }
      EXPECT_EQ(summands.seen, expected) << coarse;
      EXPECT_EQ(summands.terms.size(), expected.size());
    }
}

// A graph that captured a composite still runs it after `forget`.
TEST(Passes, ForgetKeepsWhatGraphsHold) {
  const ModelConfig config = config_of(true, true);
  ModelBench bench(config, MemoryKind::host);
  Passes passes(bench.model(), true);
  bench.set_weights(seeded_weights(config, 3));
  bench.set_batch(0, seeded_tokens(config, 1), seeded_tokens(config, 2));
  bench.forward(passes, 0);
  const float expected = bench.loss(0);
  *bench.memory().out<float>(bench.model().loss(0)) = -1.0f;
  bench.run([&](Runtime& runtime) {
    runtime.begin_capture(bench.stream());
    for (int m = 0; m < bench.model().modules(); ++m) passes.forward(runtime, bench.stream(), m, 0);
    const GraphId graph = runtime.end_capture(bench.stream());
    passes.forget();
    runtime.launch_graph(bench.stream(), graph);
  });
  EXPECT_EQ(bench.loss(0), expected);
}

// The composites that a forward pass executes.
class Bodies : public Observer {
 public:
  void before(const OpRef& op) override { list.insert(reinterpret_cast<const CompositeOp*>(op.op)->body); }
  void after(const OpRef&) override {}
  void mark(int, const Mark&) override {}
  std::set<const Composite*> list;
};

std::set<const Composite*> bodies(ModelBench& bench, Passes& passes) {
  Bodies seen;
  bench.world().set_observer(&seen);
  bench.forward(passes, 0);
  bench.world().set_observer(nullptr);
  EXPECT_EQ(seen.list.size(), static_cast<std::size_t>(bench.model().modules()));
  return seen.list;
}

bool share(const std::set<const Composite*>& a, const std::set<const Composite*>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Composite* body) { return b.count(body) > 0; });
}

TEST(Passes, RanksShareWhatTheyRecordedWhileTheirModelsAreEqual) {
  ModelBench first(kConfigs[1], MemoryKind::symbolic), equal(kConfigs[1], MemoryKind::symbolic);
  ModelBench other(kConfigs[2], MemoryKind::symbolic);
  Passes recorded(first.model(), true);
  Passes alike(equal.model(), true, &recorded), unlike(other.model(), true, &recorded);
  const std::set<const Composite*> shared = bodies(first, recorded);
  EXPECT_EQ(bodies(equal, alike), shared);
  EXPECT_FALSE(share(bodies(other, unlike), shared));
  alike.forget();
  EXPECT_FALSE(share(bodies(equal, alike), shared));
  Passes late(equal.model(), true, &recorded);
  recorded.forget();
  EXPECT_FALSE(share(bodies(equal, late), bodies(first, recorded)));
}

}  // namespace
}  // namespace gatherfuzz
