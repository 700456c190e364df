// Symbolic memory against a model that keeps a value for every single byte, under random operations.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>

#include "impl/runtime/symbolic/memory.h"
#include "impl/runtime/symbolic/rules.h"

namespace gatherfuzz {
namespace {

constexpr uint32_t kBytes = 96;

struct Byte {
  Term term = kZeroTerm;
  uint32_t offset = 0;
  Label label = kNoLabel;
  uint8_t element = 0;
  uint8_t taint = 0;

  bool positioned() const { return term != kZeroTerm && term != kUninitialized; }
  bool continued_by(const Byte& next) const {
    return term == next.term && label == next.label && taint == next.taint && element == next.element &&
           (!positioned() || offset + 1 == next.offset);
  }
};

// What a view shows of one element, or of a run of them.
struct Seen {
  Byte first;
  uint32_t begin = 0;
  uint32_t end = 0;
};

uint32_t width_of(const Operand& operand) {
  return static_cast<uint32_t>(size_of(operand.dtype));
}

class Model {
 public:
  explicit Model(uint32_t buffers) : bytes_(buffers + 1, std::vector<Byte>(kBytes)) {}

  std::vector<Byte>& buffer(BufferId id) { return bytes_[id]; }
  std::vector<Byte> cut(const Operand& o) const {
    return {bytes_[o.buffer].begin() + o.begin, bytes_[o.buffer].begin() + o.end()};
  }
  void set(const Operand& o, const std::vector<Byte>& values) {
    for (uint32_t i = 0; i < o.bytes; ++i) {
      Byte b = values[i];
      if (!b.positioned()) b = {b.term, 0, kNoLabel, 0, b.taint};
      bytes_[o.buffer][o.begin + i] = b;
    }
  }

  // Maximal runs of bytes that continue each other.
  static std::vector<Seen> runs(const std::vector<Byte>& bytes) {
    std::vector<Seen> list;
    for (uint32_t i = 0; i < bytes.size(); ++i) {
      if (i == 0 || !bytes[i - 1].continued_by(bytes[i])) list.push_back({bytes[i], i, i});
      list.back().end = i + 1;
    }
    return list;
  }

  // What the operand shows: each element as it is, of another width, shifted, or torn.
  std::vector<Seen> seen(const Operand& o) const {
    const std::vector<Byte> bytes = cut(o);
    const uint32_t width = width_of(o);
    std::vector<Seen> list;
    bool last_torn = true;
    for (uint32_t e = 0; e < o.bytes; e += width) {
      const std::vector<Seen> parts = runs({bytes.begin() + e, bytes.begin() + e + width});
      const bool is_torn = parts.size() > 1;
      if (!is_torn && !last_torn && bytes[e - 1].continued_by(bytes[e])) {
        list.back().end += width;
      } else {
        list.push_back(
            {is_torn ? torn(parts, width) : whole(bytes[e], width), o.begin + e, o.begin + e + width});
      }
      last_torn = is_torn;
    }
    return list;
  }

  static Byte whole(Byte b, uint32_t width) {
    if (!b.positioned()) return b;
    const uint32_t inside = b.offset % width;
    if (b.element != width)
      b.term = mix(mix(term_of("reinterpret"), b.term), width * 256 + inside);
    else if (inside != 0)
      b.term = mix(mix(term_of("shifted"), b.term), width * 256 + inside);
    b.element = static_cast<uint8_t>(width);
    b.offset -= inside;
    return b;
  }
  static Byte torn(const std::vector<Seen>& parts, uint32_t width) {
    Byte b{term_of("torn"), 0, kNoLabel, static_cast<uint8_t>(width), 0};
    for (const Seen& part : parts) {
      b.term = mix(mix(mix(b.term, part.first.term), part.first.offset), part.begin);
      b.label = join_labels(b.label, part.first.label);
      b.taint |= part.first.taint;
    }
    return b;
  }

  void assign(const Operand& o, Term term, Label label, uint8_t taint) {
    std::vector<Byte> values;
    for (uint32_t i = 0; i < o.bytes; ++i)
      values.push_back({term, i, label, static_cast<uint8_t>(width_of(o)), taint});
    set(o, values);
  }

  void map(const Operand& source, const Operand& target, Term add) {
    const uint32_t from = width_of(source), to = width_of(target);
    std::vector<Byte> values;
    for (const Seen& run : seen(source))
      for (uint32_t e = 0; e < (run.end - run.begin) / from; ++e)
        for (uint32_t i = 0; i < to; ++i) {
          Byte b = run.first;
          if (b.positioned()) b.term += add;
          b.offset = (run.first.offset / from + e) * to + i;
          b.element = static_cast<uint8_t>(to);
          values.push_back(b);
        }
    set(target, values);
  }

  void accumulate(const Operand& o, Term summand, uint8_t taint) {
    std::vector<Byte> values = cut(o);
    for (const Seen& run : runs(values))
      for (uint32_t i = run.begin; i < run.end; ++i) {
        Byte& b = values[i];
        const bool aligned = b.positioned() && run.first.offset == run.begin && b.element == width_of(o);
        if (b.term == kZeroTerm)
          b.term = summand;
        else if (aligned)
          b.term += summand;
        else
          b.term = mix(mix(term_of("misaligned"), b.term), summand + run.first.offset);
        b = {b.term, i, kNoLabel, static_cast<uint8_t>(width_of(o)), static_cast<uint8_t>(b.taint | taint)};
      }
    set(o, values);
  }

  void scale(const Operand& o, Term factor) {
    std::vector<Byte> values = cut(o);
    for (const Seen& run : runs(values))
      for (uint32_t i = run.begin; i < run.end; ++i) {
        Byte b = run.first;
        if (!b.positioned()) continue;
        if (b.element != width_of(o)) b = whole(b, width_of(o));
        b.term *= factor;
        b.offset += i - run.begin;
        values[i] = b;
      }
    set(o, values);
  }

 private:
  std::vector<std::vector<Byte>> bytes_;
};

using Row = std::vector<uint64_t>;
Row row(Term term, uint32_t begin, uint32_t offset, Label label, uint8_t element, uint8_t taint,
        uint32_t end) {
  return {term, begin, offset, label, element, taint, end};
}

class Fuzz {
 public:
  explicit Fuzz(uint64_t seed) : random_(seed), model_(2) {
    for (BufferId b = 1; b <= 2; ++b) {
      const bool zeroed = pick(2) == 0;
      memory_.allocate(kBytes, zeroed);
      if (!zeroed)
        model_.set(make_view<uint8_t>(b, 0, kBytes), std::vector<Byte>(kBytes, Byte{kUninitialized}));
    }
  }

  void step() {
    const Operand o = operand(type());
    const Term term = pick(6) == 0 ? kZeroTerm : pick(8) == 0 ? kUninitialized : pick(4) + 1;
    const auto taint = static_cast<uint8_t>(pick(5) == 0 ? 1 : 0);
    switch (pick(7)) {
      case 0: {
        const Label label = pick(2) == 0 ? kNoLabel : make_label(pick(2), 0, 0);
        memory_.assign(o, term, label, taint);
        model_.assign(o, term, label, taint);
        break;
      }
      case 1: {
        Operand target = operand(type());
        const uint32_t n = std::min(o.count(), target.count());
        Operand source = o;
        source.bytes = n * width_of(source);
        target.bytes = n * width_of(target);
        map_elements(memory_, source, target, [](Term t) { return t + 100; });
        model_.map(source, target, 100);
        break;
      }
      case 2: {
        const Term summand = pick(4) == 0 ? Term{0} - term : term;
        if (summand == kUninitialized || summand == Term{0} - kUninitialized) break;
        memory_.accumulate(o, summand, kNoLabel, taint);
        model_.accumulate(o, summand, taint);
        break;
      }
      case 3:
        transform_in_place(memory_, o, [](Segment& s) { s.term *= s.has_position() ? 3 : 1; });
        model_.scale(o, 3);
        break;
      case 4:
        if (!saved_ || pick(2) == 0) {
          saved_ = o;
          real_ = memory_.save(o);
          bytes_ = model_.cut(o);
        } else {
          memory_.restore(*saved_, real_);
          model_.set(*saved_, bytes_);
          saved_.reset();
        }
        break;
      default:
        compare(o);
    }
    compare_segments();
  }

  std::size_t compared = 0;
  std::size_t torn_or_split = 0;

 private:
  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  DType type() {
    constexpr DType kTypes[] = {DType::u8, DType::bf16, DType::f32, DType::u64};
    return kTypes[pick(4)];
  }
  Operand operand(DType dtype) {
    Operand o;
    o.dtype = dtype;
    o.buffer = 1 + pick(2);
    const uint32_t width = width_of(o);
    o.begin = pick(3) == 0 ? pick(kBytes - 7) : pick(kBytes / 8) * 8;
    o.bytes = pick((kBytes - o.begin) / width + 1) * width;
    return o;
  }

  void compare(const Operand& o) {
    std::vector<Row> real, expected;
    memory_.pieces(o, [&](const Segment& s, uint32_t end) {
      real.push_back(row(s.term, s.begin, s.offset, s.label, s.element, s.taint, end));
    });
    for (const Seen& s : model_.seen(o))
      expected.push_back(
          row(s.first.term, s.begin, s.first.offset, s.first.label, s.first.element, s.first.taint, s.end));
    ASSERT_EQ(real, expected);
    ++compared;
    torn_or_split += real.size() > 1 ? 1 : 0;
    // One digest for one content, wherever it lies.
    for (Row& r : real) r[1] -= o.begin, r[6] = 0;
    const Term digest = memory_.digest(o).term;
    std::vector<Row> keys;
    for (const Row& r : real) keys.push_back({r[0], r[1], r[2]});
    if (real.empty()) return;
    const auto [it, fresh] = contents_.emplace(digest, keys);
    ASSERT_EQ(it->second, keys) << (fresh ? "new" : "the same digest for another content");
  }

  void compare_segments() {
    for (BufferId b = 1; b <= 2; ++b) {
      const std::vector<Segment>& segments = memory_.segments(b);
      const std::vector<Seen> runs = Model::runs(model_.buffer(b));
      ASSERT_EQ(segments.size(), runs.size()) << "equal neighbours coalesce, and nothing else";
      for (std::size_t i = 0; i < runs.size(); ++i) {
        const Segment& s = segments[i];
        const Byte& m = runs[i].first;
        ASSERT_EQ(row(s.term, s.begin, s.offset, s.label, s.element, s.taint, 0),
                  row(m.term, runs[i].begin, m.offset, m.label, m.element, m.taint, 0));
      }
    }
  }

  std::mt19937_64 random_;
  SymbolicMemory memory_;
  Model model_;
  std::optional<Operand> saved_;
  std::vector<Segment> real_;
  std::vector<Byte> bytes_;
  std::map<Term, std::vector<Row>> contents_;
};

TEST(SymbolicMemoryModelTest, RandomOperations) {
  std::size_t compared = 0;
  std::size_t split = 0;
  for (uint64_t seed = 0; seed < 100 && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Fuzz fuzz(seed);
    for (int i = 0; i < 400 && !testing::Test::HasFatalFailure(); ++i) fuzz.step();
    compared += fuzz.compared;
    split += fuzz.torn_or_split;
  }
  EXPECT_GT(compared, 8000u);
  EXPECT_GT(split, 3000u);
}

}  // namespace
}  // namespace gatherfuzz
