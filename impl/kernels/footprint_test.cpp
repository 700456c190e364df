// Footprints are true: every declared read byte can matter, every declared byte is written, nothing else is
// touched.
#include <gtest/gtest.h>

#include "impl/kernels/attention.h"
#include "impl/kernels/cross_entropy.h"
#include "impl/kernels/embedding.h"
#include "impl/kernels/footprint_checker_for_tests.h"
#include "impl/kernels/linear.h"
#include "impl/kernels/load_batch.h"
#include "impl/kernels/mx_linear.h"
#include "impl/kernels/quantize_activation.h"
#include "impl/kernels/quantize_on_use.h"
#include "impl/kernels/residual_add.h"
#include "impl/kernels/rms_norm.h"
#include "impl/kernels/swiglu.h"

namespace gatherfuzz {

namespace {

enum class Role : uint8_t { other, read, write, accumulate };
using Bytes = std::vector<std::vector<std::byte>>;  // by buffer

class Checker {
 public:
  Checker(KernelBench& bench, const OpType& type, const void* op) : bench_(bench), type_(type), op_(op) {
    for (const uint32_t size : bench.buffers()) roles_.emplace_back(size, Role::other);
    for (const OperandField& field : type.operands) {
      const auto& operand =
          *reinterpret_cast<const Operand*>(static_cast<const std::byte*>(op) + field.offset);
      const Role role = field.mode == Mode::read    ? Role::read
                        : field.mode == Mode::write ? Role::write
                                                    : Role::accumulate;
      for (uint32_t i = operand.begin; i < operand.end(); ++i) roles_[operand.buffer - 1][i] = role;
      if (role == Role::read) inputs_.push_back(operand);
      if (role == Role::accumulate) sums_.push_back(operand);
    }
    before_ = save();
  }

  FootprintReport run() {
    const Bytes result = outcome(before_);
    find_writes(result);
    find_reads(result);
    restore(before_);
    return report_;
  }

 private:
  static Operand whole(std::size_t buffer, uint32_t size) {
    Operand all;
    all.buffer = static_cast<BufferId>(buffer + 1);
    all.bytes = size;
    return all;
  }
  Bytes save() const {
    Bytes bytes;
    for (std::size_t b = 0; b < roles_.size(); ++b)
      bytes.push_back(bench_.memory().save(whole(b, static_cast<uint32_t>(roles_[b].size()))));
    return bytes;
  }
  void restore(const Bytes& bytes) {
    for (std::size_t b = 0; b < bytes.size(); ++b)
      bench_.memory().restore(whole(b, static_cast<uint32_t>(bytes[b].size())), bytes[b]);
  }
  Bytes outcome(const Bytes& start) {
    restore(start);
    type_.host(op_, bench_.memory());
    bench_.memory().end_op();
    return save();
  }
  template <class F>
  void for_each_byte(F&& f) const {
    for (std::size_t b = 0; b < roles_.size(); ++b)
      for (std::size_t i = 0; i < roles_[b].size(); ++i) f(b, i, roles_[b][i]);
  }
  // Whether two outcomes differ in a byte that the op writes.
  bool outputs_differ(const Bytes& a, const Bytes& b) const {
    bool differ = false;
    for_each_byte([&](std::size_t buffer, std::size_t i, Role role) {
      if (role == Role::write || role == Role::accumulate) differ = differ || a[buffer][i] != b[buffer][i];
    });
    return differ;
  }

  // Outputs that began as two different patterns must end alike; what is not declared must stay.
  void find_writes(const Bytes& result) {
    Bytes inverted = before_;
    for_each_byte([&](std::size_t b, std::size_t i, Role role) {
      if (role == Role::write) inverted[b][i] = ~inverted[b][i];
    });
    const Bytes again = outcome(inverted);
    for_each_byte([&](std::size_t b, std::size_t i, Role role) {
      if (role == Role::write) {
        ++report_.write_bytes;
        report_.writes_missed += result[b][i] != again[b][i] ? 1 : 0;
      } else if (role != Role::accumulate) {
        report_.others_written += result[b][i] != before_[b][i] ? 1 : 0;
      }
    });
    for (const Operand& sum : sums_) {
      const auto width = static_cast<uint32_t>(size_of(sum.dtype));
      for (uint32_t i = sum.begin; i < sum.end(); i += width, ++report_.accumulated)
        report_.sums_missed += std::equal(&result[sum.buffer - 1][i], &result[sum.buffer - 1][i] + width,
                                          &before_[sum.buffer - 1][i])
                                   ? 1
                                   : 0;
    }
  }

  void find_reads(const Bytes& result) {
    Bytes others = before_;
    for_each_byte([&](std::size_t b, std::size_t i, Role role) {
      if (role == Role::read) report_.reads_that_never_matter += matters(result, b, i) ? 0 : 1;
      report_.read_bytes += role == Role::read ? 1 : 0;
      report_.other_bytes += role == Role::other ? 1 : 0;
      if (role == Role::other) others[b][i] = ~others[b][i];
    });
    report_.others_read = outputs_differ(outcome(others), result);
  }
  // Tried on the numbers as they are, and then, since rounding hides most small changes, near many others.
  bool matters(const Bytes& result, std::size_t buffer, std::size_t i) {
    constexpr int kOtherNumbers = 1000;
    if (changes_outputs(before_, result, buffer, i)) return true;
    for (int n = 0; n < kOtherNumbers; ++n) {
      const Bytes start = other_numbers();
      if (changes_outputs(start, outcome(start), buffer, i)) return true;
    }
    return false;
  }
  bool changes_outputs(const Bytes& start, const Bytes& result, std::size_t buffer, std::size_t i) {
    for (const uint8_t change : {0x80, 0x40, 0x01, 0x08, 0x04, 0xFF}) {
      Bytes changed = start;
      changed[buffer][i] ^= std::byte{change};
      if (outputs_differ(outcome(changed), result)) return true;
    }
    return false;
  }
  // The op's inputs with other low significand bits.
  Bytes other_numbers() {
    Bytes bytes = before_;
    for (const Operand& input : inputs_) {
      if (input.dtype != DType::f32 && input.dtype != DType::bf16) continue;
      for (uint32_t at = input.begin; at < input.end(); at += static_cast<uint32_t>(size_of(input.dtype)))
        bytes[input.buffer - 1][at] ^= static_cast<std::byte>(bench_.below(128));
    }
    return bytes;
  }

  KernelBench& bench_;
  const OpType& type_;
  const void* op_;
  std::vector<std::vector<Role>> roles_;
  std::vector<Operand> inputs_;
  std::vector<Operand> sums_;
  Bytes before_;
  FootprintReport report_;
};

}  // namespace

FootprintReport check_footprint(KernelBench& bench, const OpType& type, const void* op) {
  return Checker(bench, type, op).run();
}

namespace {

// The checker itself: ops whose declarations are wrong in each way.
struct ReadsTooMuch {
  static constexpr const char* kName = "reads_too_much";
  Read<float> in;
  Write<float> out;
  void host(HostMemory& memory) const { *memory.out<float>(out) = *memory.in<float>(in); }
};
struct WritesTooLittle {
  static constexpr const char* kName = "writes_too_little";
  Read<float> in;
  Write<float> out;
  void host(HostMemory& memory) const {
    *memory.out<float>(out) = memory.in<float>(in)[0] + memory.in<float>(in)[1];
  }
};
struct TouchesMore {
  static constexpr const char* kName = "touches_more";
  Read<float> in;
  Write<float> out;
  void host(HostMemory& memory) const {
    const uint8_t after_the_end = memory.in<uint8_t>(in)[sizeof(float)];
    *memory.out<float>(out) = memory.in<float>(in)[0] + static_cast<float>(after_the_end);
    memory.out<uint8_t>(out)[sizeof(float)] ^= 1;
  }
};

TEST(FootprintChecker, FindsEachLie) {
  KernelBench bench(3);
  const FootprintReport reads =
      check_footprint(bench, ReadsTooMuch{bench.random_floats(2), bench.view<float>(1)});
  EXPECT_EQ(reads.reads_that_never_matter, 4u);
  KernelBench second(4);
  const FootprintReport writes =
      check_footprint(second, WritesTooLittle{second.random_floats(2), second.view<float>(3)});
  EXPECT_EQ(writes.writes_missed, 8u);
  KernelBench third(5);
  const FootprintReport touches =
      check_footprint(third, TouchesMore{third.random_floats(1), third.view<float>(1)});
  EXPECT_EQ(touches.others_written, 1u);
  EXPECT_TRUE(touches.others_read);
}

class Footprint : public testing::TestWithParam<DType> {
 protected:
  template <class Op>
  void expect_true(const Op& op, std::size_t read_bytes) {
    const FootprintReport report = check_footprint(bench, op);
    EXPECT_TRUE(report.is_true()) << Op::kName << ": " << report.text();
    EXPECT_EQ(report.read_bytes, read_bytes);
    EXPECT_GT(report.write_bytes + report.accumulated, 0u);
    EXPECT_GT(report.other_bytes, 0u);
  }
  std::size_t width() const { return size_of(GetParam()); }
  View<real> random(uint32_t n, float limit = 1.0f) { return bench.random(n, GetParam(), limit); }
  View<real> view(uint32_t n) { return bench.view(n, GetParam()); }
  // Small positive numbers, as inverse roots and sums of exponentials are.
  View<float> statistics(uint32_t n) {
    const View<float> values = bench.random_floats(n);
    for (uint32_t i = 0; i < n; ++i) bench.memory().out<float>(values)[i] = bench.uniform(0.5f) + 1.0f;
    return values;
  }
  KernelBench bench{41};
};

INSTANTIATE_TEST_SUITE_P(Dtypes, Footprint, testing::Values(DType::bf16, DType::f32),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(Footprint, Embedding) {
  expect_true(Embedding{bench.random_tokens(5, 4), random(4 * 3), view(5 * 3), 3}, 5 * 4 + 12 * width());
}
TEST_P(Footprint, EmbeddingBackward) {
  expect_true(EmbeddingBackward{bench.random_tokens(5, 4), random(5 * 3), bench.random(4 * 3, DType::f32), 3},
              5 * 4 + 15 * width());
}
TEST_P(Footprint, RmsNorm) {
  expect_true(RmsNorm{random(3 * 5), random(5), view(3 * 5), bench.view<float>(3)}, 20 * width());
}
TEST_P(Footprint, RmsNormBackward) {
  expect_true(RmsNormBackward{random(3 * 5), random(3 * 5), statistics(3), random(5), view(3 * 5),
                              bench.random(5, DType::f32)},
              35 * width() + 12);
}
TEST_P(Footprint, Linear) {
  expect_true(Linear{random(3 * 5), random(2 * 5), view(3 * 2), 5, 2}, 25 * width());
}
TEST_P(Footprint, LinearDgrad) {
  expect_true(LinearDgrad{random(3 * 2), random(2 * 5), view(3 * 5), 5, 2}, 16 * width());
}
TEST_P(Footprint, LinearWgrad) {
  expect_true(LinearWgrad{random(3 * 2), random(3 * 5), bench.random(2 * 5, DType::f32), 5, 2}, 21 * width());
}
TEST_P(Footprint, Attention) {
  expect_true(Attention{random(6 * 12), view(6 * 4), bench.view<float>(12), bench.view<float>(12), 3, 2},
              72 * width());
}
TEST_P(Footprint, AttentionBackward) {
  const View<real> qkv = random(6 * 12);
  const View<float> max = bench.view<float>(12), sum = bench.view<float>(12);
  Attention{qkv, view(6 * 4), max, sum, 3, 2}.host(bench.memory());
  expect_true(AttentionBackward{qkv, random(6 * 4), max, sum, view(6 * 12), 3, 2}, 96 * width() + 96);
}
TEST_P(Footprint, Swiglu) {
  expect_true(Swiglu{random(3 * 4), view(3 * 2), 2}, 12 * width());
}
TEST_P(Footprint, SwigluBackward) {
  expect_true(SwigluBackward{random(3 * 2), random(3 * 4), view(3 * 4), 2}, 18 * width());
}
TEST_P(Footprint, ResidualAdd) {
  expect_true(ResidualAdd{random(7), random(7), view(7)}, 14 * width());
}
TEST_P(Footprint, CrossEntropy) {
  expect_true(CrossEntropy{random(3 * 4), bench.random_tokens(3, 4), bench.view<float>(1),
                           bench.view<float>(3), bench.view<float>(3)},
              12 * width() + 12);
}
TEST_P(Footprint, CrossEntropyBackward) {
  const View<real> logits = random(3 * 4);
  const View<int32_t> targets = bench.random_tokens(3, 4);
  const View<float> max = bench.view<float>(3), sum = bench.view<float>(3);
  CrossEntropy{logits, targets, bench.view<float>(1), max, sum}.host(bench.memory());
  expect_true(
      CrossEntropyBackward{logits, targets, max, sum, bench.random_floats(1), view(3 * 4), Coefficient{0.5f}},
      12 * width() + 12 + 24 + 4);
}

class MxFootprint : public Footprint {
 protected:
  static constexpr uint32_t kArea = 32 * 32;
  View<e4m3> elements() {
    const View<e4m3> view = bench.view<e4m3>(kArea);
    for (uint32_t i = 0; i < kArea; ++i)
      bench.memory().out<e4m3>(view)[i] = to_e4m3_saturate(bench.uniform(8.0f));
    return view;
  }
  View<e8m0> scales() {
    const View<e8m0> view = bench.view<e8m0>(kArea / 32);
    for (uint32_t i = 0; i < kArea / 32; ++i)
      bench.memory().out<e8m0>(view)[i].bits = static_cast<uint8_t>(120 + bench.below(8));
    return view;
  }
};

TEST_F(MxFootprint, MxLinear) {
  expect_true(MxLinear{elements(), scales(), elements(), scales(), bench.view(kArea, DType::bf16), 32, 32},
              2 * (kArea + kArea / 32));
}
TEST_F(MxFootprint, MxLinearDgrad) {
  expect_true(
      MxLinearDgrad{elements(), scales(), elements(), scales(), bench.view(kArea, DType::bf16), 32, 32},
      2 * (kArea + kArea / 32));
}
TEST_F(MxFootprint, MxLinearWgrad) {
  expect_true(
      MxLinearWgrad{elements(), scales(), elements(), scales(), bench.random(kArea, DType::f32), 32, 32},
      2 * (kArea + kArea / 32));
}
TEST_F(MxFootprint, QuantizeActivation) {
  expect_true(QuantizeActivation{bench.random(kArea, DType::bf16), bench.view<e4m3>(kArea),
                                 bench.view<e8m0>(kArea / 32), bench.view<e4m3>(kArea),
                                 bench.view<e8m0>(kArea / 32), 32},
              2 * kArea);
}
TEST_F(MxFootprint, QuantizeOnUse) {
  expect_true(
      QuantizeOnUse{bench.random(kArea, DType::bf16), bench.view<e4m3>(kArea), bench.view<e8m0>(kArea / 32),
                    bench.view<e4m3>(kArea), bench.view<e8m0>(kArea / 32), 32},
      2 * kArea);
}
TEST_F(MxFootprint, LoadBatch) {
  const Dataset dataset = Dataset::synthetic(50, 2);
  expect_true(LoadBatch{bench.view<int32_t>(24), bench.view<int32_t>(24), &dataset, 1, 2, 3, 8}, 0);
}

}  // namespace
}  // namespace gatherfuzz
