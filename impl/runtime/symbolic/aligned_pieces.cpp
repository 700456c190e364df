#include "impl/runtime/symbolic/aligned_pieces.h"

#include <algorithm>

namespace gatherfuzz {

bool AlignedPieces::begin_alike(const std::vector<Segment>& a, const std::vector<Segment>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Segment& x, const Segment& y) { return x.begin == y.begin; });
}

void AlignedPieces::cut_all() {
  begins_.clear();
  const std::span<std::vector<Segment>> lists(lists_.data(), operands_);
  for (const std::vector<Segment>& list : lists)
    for (const Segment& piece : list) begins_.push_back(piece.begin);
  std::sort(begins_.begin(), begins_.end());
  begins_.erase(std::unique(begins_.begin(), begins_.end()), begins_.end());
  for (std::vector<Segment>& list : lists) {
    cut_.clear();
    std::size_t at = 0;
    for (const uint32_t begin : begins_) {
      while (at + 1 < list.size() && list[at + 1].begin <= begin) ++at;
      cut_.push_back(SymbolicMemory::cut(list[at], begin));
    }
    list.swap(cut_);
  }
}

}  // namespace gatherfuzz
