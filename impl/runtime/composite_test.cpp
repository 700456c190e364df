// Composites: the union of the footprints of their parts, and the same numbers as the parts one by one.
#include "impl/runtime/composite.h"

#include "impl/runtime/collective.h"
#include "impl/runtime/local/world_for_tests.h"

namespace gatherfuzz {
namespace {

struct Copy {
  static constexpr const char* kName = "copy";
  Read<float> source;
  Write<float> target;
  void host(HostMemory& memory) const {
    std::copy_n(memory.in<float>(source), target.count(), memory.out<float>(target));
  }
};

struct Sum {
  static constexpr const char* kName = "sum";
  Read<float> source;
  Accumulate<float> target;
  Coefficient factor;
  void host(HostMemory& memory) const {
    for (uint32_t i = 0; i < target.count(); ++i)
      memory.out<float>(target)[i] += factor.value * memory.in<float>(source)[i];
  }
};

View<float> at(BufferId buffer, uint32_t first, uint32_t count) {
  return make_view<float>(buffer, first * 4, count);
}

std::string describe(const Composite& composite) {
  static constexpr const char* kModes[] = {"read", "write", "update", "accumulate"};
  std::string text;
  for (const Access& access : composite.accesses)
    text += std::string(text.empty() ? "" : ", ") + kModes[static_cast<int>(access.field.mode)] + " " +
            std::to_string(access.operand.buffer) + "[" + std::to_string(access.operand.begin / 4) + ":" +
            std::to_string(access.operand.end() / 4) + "]";
  return text;
}

template <class... Ops>
std::unique_ptr<Composite> record(const Ops&... ops) {
  CompositeRecorder recorder("layer");
  (recorder.launch(ops), ...);
  return recorder.finish();
}

TEST(CompositeTest, ReadsOfWhatAPartWroteAreInternal) {
  EXPECT_EQ(describe(*record(Copy{at(1, 0, 8), at(2, 0, 8)}, Copy{at(2, 0, 8), at(3, 0, 8)})),
            "read 1[0:8], write 2[0:8], write 3[0:8]");
  EXPECT_EQ(describe(*record(Copy{at(2, 0, 8), at(3, 0, 8)}, Copy{at(1, 0, 8), at(2, 0, 8)})),
            "read 2[0:8], read 1[0:8], write 3[0:8], write 2[0:8]");
}

TEST(CompositeTest, AReadOfSomeWrittenBytesReadsTheOthersOnly) {
  EXPECT_EQ(describe(*record(Copy{at(1, 0, 4), at(2, 2, 4)}, Copy{at(2, 0, 8), at(3, 0, 8)})),
            "read 1[0:4], read 2[0:2], read 2[6:8], write 2[2:6], write 3[0:8]");
}

TEST(CompositeTest, NeighboursJoinInAnyOrder) {
  EXPECT_EQ(describe(*record(Copy{at(1, 0, 4), at(2, 0, 4)}, Copy{at(1, 8, 4), at(2, 8, 4)},
                             Copy{at(1, 4, 4), at(2, 4, 4)}, Copy{at(2, 0, 12), at(3, 0, 12)})),
            "read 1[0:12], write 2[0:12], write 3[0:12]");
}

TEST(CompositeTest, AccumulationsStayUnlessAPartWroteBefore) {
  EXPECT_EQ(describe(*record(Sum{at(1, 0, 4), at(2, 0, 4), {}}, Sum{at(1, 0, 4), at(2, 0, 4), {}})),
            "read 1[0:4], accumulate 2[0:4]");
  EXPECT_EQ(
      describe(*record(Copy{at(1, 0, 4), at(2, 0, 4)}, Sum{at(1, 0, 4), at(2, 0, 4), {}})).find("accumulate"),
      std::string::npos);
}

TEST(CompositeTest, UpdatesReadAndWrite) {
  EXPECT_EQ(describe(*record(AddTo{at(1, 0, 4), 1}, AddTo{at(1, 0, 4), 1})), "read 1[0:4], write 1[0:4]");
  EXPECT_EQ(describe(*record(SetTo{at(1, 0, 4), 1}, AddTo{at(1, 0, 4), 1})), "write 1[0:4]");
}

TEST(CompositeTest, CollectivesAreRefused) {
  CompositeRecorder recorder("layer");
  EXPECT_EQ(error_of([&] { recorder.launch(all_gather_in_place(at(1, 0, 4), 0, 2)); }), Error::invalid_value);
}

class CompositeRunTest : public BothMemories {};
INSTANTIATE_TEST_SUITE_P(Memories, CompositeRunTest, kBothMemories, memory_name);

TEST(CompositeTest, OnHostTheSameNumbersAlsoNestedAndCaptured) {
  WorldOptions options;
  options.memory = MemoryKind::host;
  World world(options);
  View<float> x, y, z;
  std::vector<std::unique_ptr<Composite>> kept;
  world.run([&](Runtime& rt) {
    x = floats(rt, 4), y = floats(rt, 4), z = floats(rt, 4);
    kept.push_back(record(AddTo{x, 2}, TripleAdd{x, y, 1}));
    CompositeRecorder outer("outer");
    const CompositeOp inner{kept[0].get()};
    outer.submit(kept[0]->type, &inner, Site::here());
    outer.launch(Sum{y, z, {2.0f}});
    kept.push_back(outer.finish());
    EXPECT_EQ(describe(*kept[1]).substr(0, 5), "read ");
    const CompositeOp op{kept[1].get()};
    const StreamId s = rt.create_stream("s");
    rt.begin_capture(s);
    rt.submit(s, kept[1]->type, &op, Site::here());
    const GraphId graph = rt.end_capture(s);
    rt.launch_graph(s, graph);
    rt.launch_graph(s, graph);
  });
  EXPECT_TRUE(holds(world, 0, x, 4));
  EXPECT_TRUE(holds(world, 0, y, 13));
  EXPECT_TRUE(holds(world, 0, z, 2 * (7 + 13)));
}

TEST_P(CompositeRunTest, ReleasedMemoryInsideIsAnIllegalAddress) {
  World world(options());
  std::unique_ptr<Composite> composite;
  world.run([&](Runtime& rt) {
    const View<float> x = floats(rt, 4), y = floats(rt, 4);
    composite = record(Copy{x, y});
    const CompositeOp op{composite.get()};
    rt.submit(0, composite->type, &op, Site::here());
    rt.release(y.buffer);
    EXPECT_EQ(error_of([&] { rt.submit(0, composite->type, &op, Site::here()); }), Error::illegal_address);
  });
}

// The term of an output: the same for the same inputs and coefficients, another for any other.
TEST(CompositeTest, SymbolicOutputsDependOnInputsCoefficientsAndName) {
  const auto outcome = [](Term input, float factor, const char* name) {
    SymbolicMemory memory;
    const BufferId a = memory.allocate(16, true), b = memory.allocate(16, true),
                   c = memory.allocate(16, true);
    memory.assign(at(a, 0, 4), input, make_label(1, 0, 0), 0);
    CompositeRecorder recorder(name);
    recorder.launch(Copy{at(a, 0, 4), at(b, 0, 4)});
    recorder.launch(Sum{at(b, 0, 4), at(c, 0, 4), {factor}});
    const std::unique_ptr<Composite> composite = recorder.finish();
    const CompositeOp op{composite.get()};
    composite->type.symbolic(&op, memory);
    EXPECT_EQ(memory.digest(at(b, 0, 4)).label, make_label(1, 0, 0));
    EXPECT_NE(memory.digest(at(b, 0, 4)).term, memory.digest(at(c, 0, 4)).term);
    return memory.digest(at(c, 0, 4)).term;
  };
  const Term base = outcome(1, 1.0f, "layer");
  EXPECT_EQ(outcome(1, 1.0f, "layer"), base);
  EXPECT_NE(outcome(2, 1.0f, "layer"), base);
  EXPECT_NE(outcome(1, 2.0f, "layer"), base);
  EXPECT_NE(outcome(1, 1.0f, "other"), base);
}

}  // namespace
}  // namespace gatherfuzz
