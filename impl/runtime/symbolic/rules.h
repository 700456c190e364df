// Rules by which ops change symbolic memory. The default follows from the op's declaration alone: every
// output is a hash of the op's name, its scalars and all its inputs.
#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "impl/runtime/error.h"
#include "impl/runtime/fields.h"
#include "impl/runtime/symbolic/memory.h"

namespace gatherfuzz {

// Joins inputs into one value, and writes outputs that derive from it.
class HashRule {
 public:
  // `name`: the term of the op's name.
  explicit HashRule(Term name) : name_(name) {}

  void input(const SymbolicMemory& memory, const Operand& operand) {
    if (operand.empty()) return;
    const Digest digest = memory.digest(operand);
    add(digest.term);
    label_ = join_labels(label_, digest.label);
    taint_ |= digest.taint;
  }
  void scalar(uint64_t bits) { add(bits); }

  void output(SymbolicMemory& memory, const Operand& operand, Mode mode) {
    if (operand.empty()) return;
    const Term term = mix(mix(name_, inputs_), ++outputs_);
    if (mode == Mode::accumulate) {
      memory.accumulate(operand, term, label_, taint_);
    } else {
      memory.assign(operand, term, label_, taint_);
    }
  }

 private:
  // A sum of hashes that know their place: no hash has to wait for the one before.
  void add(uint64_t input) { inputs_ += mix(input, ++count_); }

  Term name_;
  Term inputs_ = 0;
  Label label_ = kNoLabel;
  uint8_t taint_ = 0;
  uint64_t count_ = 0;
  uint64_t outputs_ = 0;
};

template <class T>
uint64_t scalar_bits(const T& value) {
  uint64_t bits = 0;
  static_assert(sizeof(T) <= sizeof bits && std::is_trivially_copyable_v<T>);
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <class Op>
void hash_all_inputs(const Op& op, SymbolicMemory& memory) {
  static constexpr Term kName = term_of(Op::kName);
  HashRule rule(kName);
  for_each_field(op, [&](const auto& field) {
    using F = std::remove_cvref_t<decltype(field)>;
    if constexpr (!std::is_base_of_v<Operand, F>) {
      rule.scalar(scalar_bits(field));
    } else if constexpr (F::kMode == Mode::read || F::kMode == Mode::update) {
      rule.input(memory, field);
    }
  });
  for_each_field(op, [&](const auto& field) {
    using F = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_base_of_v<Operand, F>) {
      if constexpr (F::kMode != Mode::read) rule.output(memory, field, F::kMode);
    }
  });
}

// Elementwise from `source` to `target` (same number of elements, dtypes may differ): each piece keeps its
// element index. f(term) gives the new term; zero stays zero and uninitialized memory stays that. Throws
// invalid_value if the numbers of elements differ.
template <class F>
void map_elements(SymbolicMemory& memory, const Operand& source, const Operand& target, F&& f) {
  const auto from = static_cast<uint32_t>(size_of(source.dtype));
  const auto to = static_cast<uint32_t>(size_of(target.dtype));
  if (source.bytes / from != target.bytes / to)
    throw RuntimeError(Error::invalid_value, "elementwise operands of " + std::to_string(source.count()) +
                                                 " and " + std::to_string(target.count()) + " elements");
  static thread_local std::vector<Segment> pieces;
  pieces.clear();
  memory.pieces(source, [&](const Segment& piece, uint32_t) {
    Segment out = piece;
    if (piece.has_position()) out.term = f(piece.term);
    out.begin = target.begin + (piece.begin - source.begin) / from * to;
    out.offset = piece.offset / from * to;
    out.element = static_cast<uint8_t>(to);
    if (out.begin < target.end()) pieces.push_back(out);  // not the rest of an element that is cut off
  });
  memory.assign_pieces(target.buffer, pieces, target.end());
}

// Rewrites each piece of the operand in place. f(segment) changes term and taint, and must keep zero zero.
template <class F>
void transform_in_place(SymbolicMemory& memory, const Operand& operand, F&& f) {
  if (operand.empty()) return;
  const SymbolicMemory::Span span = memory.isolate(operand);
  const auto width = static_cast<uint8_t>(size_of(operand.dtype));
  for (Segment* s = span.first; s != span.last; ++s) {
    if (s->has_position() && s->element != width) SymbolicMemory::reinterpret(*s, width);
    f(*s);
    s->normalize();
  }
  memory.settle(operand);
}

}  // namespace gatherfuzz
