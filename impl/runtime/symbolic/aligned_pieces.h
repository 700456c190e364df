// Several operands of equal length seen side by side: their pieces, cut so that all begin at the same
// positions. What element by element rules work on.
#pragma once

#include <span>
#include <vector>

#include "impl/runtime/symbolic/memory.h"

namespace gatherfuzz {

class AlignedPieces {
 public:
  explicit AlignedPieces(std::size_t operands) { expect(operands); }
  // The number of operands that will be loaded. Keeps memory that fewer do not need.
  void expect(std::size_t operands) {
    operands_ = operands;
    if (lists_.size() < operands) lists_.resize(operands);
  }

  // The pieces of operand i, with positions relative to its begin.
  void load(std::size_t i, const SymbolicMemory& memory, const Operand& operand) {
    std::vector<Segment>& list = lists_[i];
    list.clear();
    memory.pieces(operand, [&](const Segment& piece, uint32_t) {
      list.push_back(piece);
      list.back().begin -= operand.begin;
    });
  }
  // Cuts what was loaded at all positions where a piece of any operand begins.
  void align() {
    for (std::size_t i = 1; i < operands_; ++i)
      if (!begin_alike(lists_[0], lists_[i])) return cut_all();
  }

  std::size_t operands() const { return operands_; }
  // The number of pieces that each operand has.
  std::size_t size() const { return lists_[0].size(); }
  std::span<Segment> of(std::size_t operand) { return lists_[operand]; }

 private:
  static bool begin_alike(const std::vector<Segment>& a, const std::vector<Segment>& b);
  void cut_all();

  std::size_t operands_ = 0;
  std::vector<std::vector<Segment>> lists_;  // those beyond operands_ are spare
  std::vector<uint32_t> begins_;
  std::vector<Segment> cut_;
};

}  // namespace gatherfuzz
