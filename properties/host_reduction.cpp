// Hop 3 of the host runtime's monitor: what ranks and microbatches contribute, reduced.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "properties/host_monitor.h"

namespace gatherfuzz {

// Exact, from the implementation's local gradients, in ascending order of ranks.
const std::vector<float>* HostMonitor::reduced(int step, uint32_t param) {
  std::vector<float>& result = common(step).reduced[param];
  if (!result.empty()) return &result;
  std::vector<std::vector<float>> by_rank;
  for (const Local& l : local_) {
    if (l.step != step || l.gradients[param].empty()) return nullptr;
    by_rank.push_back(l.gradients[param]);
  }
  result = reduce(std::move(by_rank), step);
  return &result;
}

std::vector<float> HostMonitor::reduce(std::vector<std::vector<float>> by_rank, int step) {
  std::vector<float> result = over_ranks(std::move(by_rank));
  divide_by_tokens(result, step);
  return result;
}

// The mean over ranks; with per-token loss the sum.
std::vector<float> HostMonitor::over_ranks(std::vector<std::vector<float>> by_rank) const {
  if (by_rank.size() == 1) return std::move(by_rank[0]);
  const bool average = settings_.average_in_collective;
  if (!average && !settings_.calculate_per_token_loss)
    for (std::vector<float>& g : by_rank)
      reference::scale_before_sum(settings_.grad_precision, g, world_.ranks());
  return reference::reduce(settings_.grad_precision, by_rank, average);
}

void HostMonitor::divide_by_tokens(std::vector<float>& gradient, int step) {
  if (settings_.calculate_per_token_loss)
    reference::divide_by_tokens(settings_.grad_precision, gradient, tokens_of(step));
}

void HostMonitor::check_reduced(const OpRef& op, const Shard& shard, const Operand& operand) {
  const RankState& state = rank(op.rank);
  if (!state.in_step || injected(state.step)) return;
  const float* found = memory(op.rank).load(operand);
  for (const ShardPiece& piece : shard.pieces) {
    const std::vector<float>* expected = reduced(state.step, piece.param);
    if (expected != nullptr && std::memcmp(found + piece.in_shard, expected->data() + piece.in_param,
                                           piece.count * sizeof(float)) == 0)
      continue;
    use_share(&StepShares::reduced, op.rank, std::numeric_limits<double>::infinity());
    report_reduced(op, piece, operand,
                   reduced_text(piece, {found + piece.in_shard, piece.count}, expected, state.step));
  }
  memory(op.rank).end_op();
}

// Which one change of what is expected explains what was found, bit for bit; otherwise where they differ.
std::string HostMonitor::reduced_text(const ShardPiece& piece, std::span<const float> found,
                                      const std::vector<float>* expected, int step) {
  std::vector<std::vector<float>> by_rank;
  for (const Local& l : local_)
    by_rank.push_back(l.gradients.empty() ? std::vector<float>() : l.gradients[piece.param]);
  for (std::size_t r = 0; r < by_rank.size() && expected == nullptr; ++r)
    if (by_rank[r].empty()) return "nothing of rank " + std::to_string(r);
  if (expected == nullptr) return "gradients of different steps";
  const auto same = [&](std::size_t i, float value) {
    return std::bit_cast<uint32_t>(found[i]) == std::bit_cast<uint32_t>(value);
  };
  const auto equals = [&](const auto& value) {
    for (std::size_t i = 0; i < found.size(); ++i)
      if (!same(i, value(piece.in_param + i))) return false;
    return true;
  };
  if (equals([](std::size_t) { return 0.0f; })) return "zero";
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    std::vector<std::vector<float>> others = by_rank;
    std::fill(others[r].begin(), others[r].end(), 0.0f);
    if (others[r].size() != expected->size()) break;  // a rank is in the next step already
    const std::vector<float> without = reduce(std::move(others), step);
    if (equals([&](std::size_t i) { return without[i]; })) return "nothing of rank " + std::to_string(r);
  }
  const bool complete = std::all_of(by_rank.begin(), by_rank.end(), [&](const auto& gradient) {
    return gradient.size() == expected->size();
  });
  if (settings_.calculate_per_token_loss && complete) {
    const std::vector<float> sum = over_ranks(by_rank);
    if (equals([&](std::size_t i) { return sum[i]; }))
      return "the sum over tokens, not divided by their number";
    std::vector<float> twice = *expected;
    divide_by_tokens(twice, step);
    if (equals([&](std::size_t i) { return twice[i]; }))
      return "that, divided by the tokens of all ranks again";
  }
  std::size_t different = 0, first = found.size();
  for (std::size_t i = found.size(); i-- > 0;)
    if (!same(i, (*expected)[piece.in_param + i])) ++different, first = i;
  const float here = found[first], there = (*expected)[piece.in_param + first];
  const float factor = here / there;
  if (equals([&](std::size_t i) { return (*expected)[i] * factor; }))
    return "that times " + number_text(factor);
  return std::to_string(different) + " of " + std::to_string(found.size()) +
         " elements differ; the first is " + number_text(here) + " in place of " + number_text(there);
}

}  // namespace gatherfuzz
