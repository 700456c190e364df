// The footprint checker, and that it finds ops whose declarations are wrong.
#include <gtest/gtest.h>

#include <algorithm>

#include "impl/kernels/footprint_checker_for_tests.h"

namespace gatherfuzz {

namespace {

enum class Role : uint8_t { other, read, write, update, accumulate };

Role role_of(Mode mode) {
  switch (mode) {
    case Mode::read:
      return Role::read;
    case Mode::write:
      return Role::write;
    case Mode::update:
      return Role::update;
    case Mode::accumulate:
      return Role::accumulate;
  }
  return Role::other;
}

using Bytes = std::vector<std::vector<std::byte>>;  // by buffer

class Checker {
 public:
  Checker(KernelBench& bench, const OpType& type, const void* op) : bench_(bench), type_(type), op_(op) {
    for (const uint32_t size : bench.buffers()) roles_.emplace_back(size, Role::other);
    for (const OperandField& field : type.operands) {
      const auto& operand =
          *reinterpret_cast<const Operand*>(static_cast<const std::byte*>(op) + field.offset);
      const Role role = role_of(field.mode);
      for (uint32_t i = operand.begin; i < operand.end(); ++i) roles_[operand.buffer - 1][i] = role;
      if (role == Role::read) inputs_.push_back(operand);
      if (role == Role::accumulate || role == Role::update) sums_.push_back(operand);
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
      if (role != Role::read && role != Role::other) differ = differ || a[buffer][i] != b[buffer][i];
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
      } else if (role == Role::read || role == Role::other) {
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
      if (role == Role::update) report_.olds_that_never_matter += matters(result, b, i) ? 0 : 1;
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
struct IgnoresWhatItUpdates {
  static constexpr const char* kName = "ignores_what_it_updates";
  Read<float> in;
  Update<float> out;
  void host(HostMemory& memory) const { *memory.out<float>(out) = *memory.in<float>(in); }
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
  KernelBench fourth(6);
  const FootprintReport updates =
      check_footprint(fourth, IgnoresWhatItUpdates{fourth.random_floats(1), fourth.view<float>(1)});
  EXPECT_EQ(updates.olds_that_never_matter, 4u);
  KernelBench third(5);
  const FootprintReport touches =
      check_footprint(third, TouchesMore{third.random_floats(1), third.view<float>(1)});
  EXPECT_EQ(touches.others_written, 1u);
  EXPECT_TRUE(touches.others_read);
}

}  // namespace
}  // namespace gatherfuzz
