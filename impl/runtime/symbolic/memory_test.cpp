// Symbolic memory: what terms mean, and when they are none that anything expects.
#include "impl/runtime/symbolic/memory.h"

#include <gtest/gtest.h>

#include <set>

#include "impl/runtime/symbolic/rules.h"

namespace gatherfuzz {
namespace {

constexpr Term kValue = 0x1234567890ABCDEFULL;

View<float> floats_at(uint32_t first, uint32_t count) {
  return make_view<float>(1, first * 4, count);
}

struct SymbolicMemoryTest : testing::Test {
  SymbolicMemoryTest() { memory.allocate(64, true); }
  std::size_t segments() const { return memory.segments(1).size(); }
  SymbolicMemory memory;
};

TEST_F(SymbolicMemoryTest, FreshMemoryIsZeroOrUninitialized) {
  const BufferId other = memory.allocate(32, false);
  EXPECT_EQ(memory.digest(floats_at(0, 16)).term, kZeroTerm);
  EXPECT_EQ(memory.digest(make_view<float>(other, 0, 8)).term, kUninitialized);
  EXPECT_EQ(memory.bytes(other), 32u);
  memory.assign(floats_at(0, 16), kValue);
  memory.release(1);
  EXPECT_EQ(memory.digest(floats_at(0, 16)).term, kUninitialized);
}

TEST_F(SymbolicMemoryTest, AssignedPiecesCoalesce) {
  Segment piece;
  piece.term = kValue;
  piece.element = 4;
  for (const uint32_t quarter : {2u, 0u, 3u, 1u}) {  // as shards arrive from ranks
    piece.begin = piece.offset = quarter * 16;
    memory.assign_piece(1, piece, piece.begin + 16);
  }
  EXPECT_EQ(segments(), 1u);
  EXPECT_EQ(memory.digest(floats_at(0, 16)).term, kValue);
  memory.assign(floats_at(4, 4), kZeroTerm);
  EXPECT_EQ(segments(), 3u);
  memory.assign(floats_at(0, 4), kZeroTerm);
  memory.assign(floats_at(8, 8), kZeroTerm);
  EXPECT_EQ(segments(), 1u);
}

TEST_F(SymbolicMemoryTest, NeighboursThatDifferInAnythingStay) {
  Segment piece{kValue, 0, 0, kNoLabel, 4, 0};
  memory.assign_piece(1, piece, 32);
  piece.begin = 32;
  const auto with = [&](uint32_t offset, Label label, uint8_t element, uint8_t taint) {
    Segment right = piece;
    right.offset = offset, right.label = label, right.element = element, right.taint = taint;
    memory.assign_piece(1, right, 64);
    return segments();
  };
  EXPECT_EQ(with(32, kNoLabel, 4, 0), 1u);
  EXPECT_EQ(with(36, kNoLabel, 4, 0), 2u);
  EXPECT_EQ(with(32, make_label(0, 0, 0), 4, 0), 2u);
  EXPECT_EQ(with(32, kNoLabel, 2, 0), 2u);
  EXPECT_EQ(with(32, kNoLabel, 4, 1), 2u);
}

TEST_F(SymbolicMemoryTest, PartsOfAValueKnowTheirPosition) {
  memory.assign(floats_at(0, 16), kValue);
  const Term part = memory.digest(floats_at(4, 4)).term;
  EXPECT_NE(part, kValue);
  EXPECT_NE(part, memory.digest(floats_at(8, 4)).term);
  memory.assign(floats_at(8, 8), kZeroTerm);
  EXPECT_EQ(memory.digest(floats_at(4, 4)).term, part);
}

TEST_F(SymbolicMemoryTest, CastKeepsTheElementIndex) {
  const BufferId narrow = memory.allocate(32, true);
  memory.assign(floats_at(0, 16), kValue);
  for (const uint32_t first : {8u, 0u, 4u, 12u})
    map_elements(memory, floats_at(first, 4), make_view<bf16>(narrow, first * 2, 4),
                 [](Term t) { return t + 1; });
  EXPECT_EQ(memory.segments(narrow).size(), 1u);
  EXPECT_EQ(memory.digest(make_view<bf16>(narrow, 0, 16)).term, kValue + 1);
}

TEST_F(SymbolicMemoryTest, CastKeepsZeroAndUninitialized) {
  const BufferId target = memory.allocate(64, true);
  memory.assign(floats_at(0, 8), kUninitialized);
  map_elements(memory, floats_at(0, 16), make_view<float>(target, 0, 16), [](Term) { return kValue; });
  EXPECT_EQ(memory.digest(make_view<float>(target, 0, 8)).term, kUninitialized);
  EXPECT_EQ(memory.digest(make_view<float>(target, 32, 8)).term, kZeroTerm);
}

TEST_F(SymbolicMemoryTest, TheRestOfACutElementMapsToNothing) {
  const BufferId target = memory.allocate(32, true);
  memory.assign(floats_at(0, 16), kValue);
  View<float> source = floats_at(0, 2);
  source.bytes += 2;
  map_elements(memory, source, make_view<bf16>(target, 0, 2), [](Term t) { return t; });
  ASSERT_EQ(memory.segments(target).size(), 2u);
  EXPECT_EQ(memory.segments(target)[0].term, kValue);
  EXPECT_EQ(memory.segments(target)[1].term, kZeroTerm);
  EXPECT_EQ(memory.segments(target)[1].begin, 4u);
}

TEST_F(SymbolicMemoryTest, ElementwiseOperandsOfDifferentLengthsAreAnError) {
  const auto copy = [&](uint32_t from, uint32_t to) {
    map_elements(memory, floats_at(0, from), make_view<bf16>(1, 32, to), [](Term t) { return t; });
  };
  copy(4, 4);
  EXPECT_THROW(copy(4, 5), RuntimeError);
  EXPECT_THROW(copy(5, 4), RuntimeError);
}

// None of these is a value that something expects, and no two of them are the same.
TEST_F(SymbolicMemoryTest, WrongViewsAreTermsOfTheirOwn) {
  const Operand all = floats_at(0, 4);
  std::set<Term> terms{kValue, kZeroTerm, kUninitialized, mix(kValue, 2), mix(kValue, 4)};
  const std::size_t expected = terms.size();
  const auto fresh = [&] { memory.assign(floats_at(0, 16), kValue); };
  const auto look = [&](const Operand& operand) {
    memory.pieces(operand, [&](const Segment& piece, uint32_t) {
      EXPECT_TRUE(terms.insert(piece.term).second) << "piece at " << piece.begin;
    });
  };
  fresh();
  look(make_view<bf16>(1, 0, 8));                       // another width
  look(make_view<uint64_t>(1, 0, 2));                   // another width
  look(make_view<float>(1, 2, 3));                      // begins inside an element
  memory.assign(make_view<bf16>(1, 0, 1), kValue + 1);  // tears the first element
  look(floats_at(0, 1));
  fresh();
  memory.assign(make_view<bf16>(1, 2, 1), kZeroTerm);
  look(floats_at(0, 1));
  fresh();
  memory.accumulate(floats_at(1, 3), kValue, kNoLabel, 0);  // positions differ
  look(floats_at(1, 3));
  memory.assign(all, kUninitialized);
  memory.accumulate(all, kValue, kNoLabel, 0);
  look(all);
  EXPECT_EQ(terms.size(), expected + 7);
}

// A value that begins inside an element does not pass for one that begins there.
TEST_F(SymbolicMemoryTest, TornElementsDoNotSurviveACopy) {
  memory.assign(make_view<float>(1, 2, 4), kValue);
  map_elements(memory, floats_at(0, 5), floats_at(8, 5), [](Term t) { return t; });
  const Term first = memory.digest(floats_at(8, 1)).term;
  const Term second = memory.digest(floats_at(9, 1)).term;
  const std::set<Term> good{kValue, mix(kValue, 4), kZeroTerm};
  EXPECT_EQ(good.count(first), 0u);
  EXPECT_EQ(good.count(second), 0u);
}

TEST_F(SymbolicMemoryTest, AccumulationAddsAndReports) {
  struct Listener : SummandListener {
    void summand(int rank, uint16_t tag, Label label, Term term) override {
      heard.push_back({static_cast<uint64_t>(rank), tag, label, term});
    }
    std::vector<std::vector<uint64_t>> heard;
  } listener;
  memory.set_listener(&listener);
  const View<float> grad = floats_at(0, 16).tagged(4);
  memory.accumulate(grad, 10, make_label(0, 1, 2), 0);
  memory.accumulate(grad, 5, make_label(0, 2, 2), 1);
  memory.accumulate(floats_at(0, 16), Term{0} - 15, kNoLabel, 0);
  EXPECT_EQ(listener.heard, (std::vector<std::vector<uint64_t>>{{0, 5, make_label(0, 1, 2), 10},
                                                                {0, 5, make_label(0, 2, 2), 5}}));
  const Digest digest = memory.digest(grad);
  EXPECT_EQ(digest.term, kZeroTerm);
  EXPECT_EQ(digest.label, kNoLabel);
  EXPECT_EQ(digest.taint, 1);
  EXPECT_EQ(memory.segments(1)[0].element, 0) << "zero has no element size";
}

TEST_F(SymbolicMemoryTest, EmptyOperandsHoldNothing) {
  memory.assign(floats_at(0, 16), kValue, make_label(1, 1, 1), 1);
  EXPECT_EQ(memory.digest(floats_at(3, 0)).term, kZeroTerm);
  EXPECT_FALSE(memory.tainted(floats_at(3, 0)));
  memory.assign(floats_at(3, 0), 5);
  memory.accumulate(floats_at(3, 0), 5, kNoLabel, 0);
  EXPECT_EQ(segments(), 1u);
}

TEST(LabelTest, Join) {
  const Label a = make_label(0, 0, 0), b = make_label(15, 255, 0x7FFFE);
  EXPECT_NE(a, kNoLabel);
  EXPECT_NE(b, kMixedLabel);
  EXPECT_EQ(join_labels(a, a), a);
  EXPECT_EQ(join_labels(a, kNoLabel), a);
  EXPECT_EQ(join_labels(kNoLabel, a), a);
  EXPECT_EQ(join_labels(a, b), kMixedLabel);
  EXPECT_EQ(join_labels(kMixedLabel, a), kMixedLabel);
}

TEST(ScaleTermTest, IsOddAndOneForOne) {
  std::set<Term> seen;
  for (const float factor : {1.0f, 0.5f, 1.0f / 3, -1.0f, 0.0f, 2.0f}) {
    EXPECT_EQ(scale_term(factor) & 1, 1u);
    seen.insert(scale_term(factor));
  }
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_EQ(scale_term(1.0f), 1u);
}

}  // namespace
}  // namespace gatherfuzz
