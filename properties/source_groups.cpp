#include "properties/source_groups.h"

#include <algorithm>

namespace gatherfuzz {

SourceGroups::Group SourceGroups::of(std::size_t source) const {
  const int i = static_cast<int>(source);
  return {i / uses_ / microbatches_, i / uses_ % microbatches_, i % uses_};
}

bool SourceGroups::contains(const Group& group, std::size_t source) const {
  const Group one = of(source);
  const auto fits = [](int wanted, int found) { return wanted == kAll || wanted == found; };
  return fits(group.rank, one.rank) && fits(group.microbatch, one.microbatch) && fits(group.use, one.use);
}

std::vector<SourceGroups::Group> SourceGroups::from_small_to_large() const {
  const auto size = [this](const Group& g) {
    return (g.rank == kAll ? ranks_ : 1) * (g.microbatch == kAll ? microbatches_ : 1) *
           (g.use == kAll ? uses_ : 1);
  };
  std::vector<Group> groups;
  // Where there is one of a kind, it and all of them are the same group.
  for (int rank = ranks_ > 1 ? kAll : 0; rank < ranks_; ++rank)
    for (int m = kAll; m < (microbatches_ > 1 ? microbatches_ : 0); ++m)
      for (int use = kAll; use < (uses_ > 1 ? uses_ : 0); ++use)
        if (rank != kAll || m != kAll || use != kAll) groups.push_back({rank, m, use});
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const Group& a, const Group& b) { return size(a) < size(b); });
  return groups;
}

std::string SourceGroups::text(const Group& group) const {
  std::string text = group.rank == kAll ? "every rank" : "rank " + std::to_string(group.rank);
  if (microbatches_ > 1 && group.microbatch != kAll)
    text += ", microbatch " + std::to_string(group.microbatch);
  if (uses_ > 1 && group.use != kAll)
    text += group.use == 0 ? ", as the output's weight" : ", as the embedding";
  return text;
}

}  // namespace gatherfuzz
