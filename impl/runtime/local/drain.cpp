// What all drains share: which ranks' collectives go on together, and the words for those that cannot.
#include "impl/runtime/local/rank.h"

namespace gatherfuzz {

namespace {

// E.g. "reduce_scatter (16 x bf16, sum) in a graph".
std::string say(const OpRef& ref) {
  static constexpr const char* kReduction[] = {"", ", sum", ", average", ", max"};
  const CollectiveCall call = describe_collective(*ref.type, ref.op);
  return std::string(call.type->name) + " (" + std::to_string(call.count) + " x " + name_of(call.dtype) +
         kReduction[static_cast<int>(call.reduction)] + ")" + (ref.graph != 0 ? " in a graph" : "");
}

}  // namespace

bool Drain::agree(const OpRef& a, const OpRef& b) {
  return (a.graph != 0) == (b.graph != 0) &&
         describe_collective(*a.type, a.op) == describe_collective(*b.type, b.op);
}

std::string Drain::describe_wait(const std::vector<const OpRef*>& blocked) const {
  std::string text;
  for (std::size_t r = 0; r < blocked.size(); ++r) {
    if (blocked[r] == nullptr) continue;
    for (std::size_t other = 0; other < blocked.size(); ++other) {
      if (other == r) continue;
      if (blocked[other] != nullptr && agree(*blocked[r], *blocked[other])) continue;
      if (!text.empty()) text += "; ";
      text += "rank " + std::to_string(r) + " in " + say(*blocked[r]) + " waits for rank " +
              std::to_string(other) + ", ";
      if (blocked[other] != nullptr) {
        text += "which is in " + say(*blocked[other]);
      } else {
        const RankRuntime& late = rank(static_cast<int>(other));
        text += !late.queue_.empty()   ? "whose streams wait"
                : !late.fiber_->done() ? "whose host waits"
                                       : "which has ended";
      }
    }
  }
  return text;
}

}  // namespace gatherfuzz
