// Groups of the contributions to a parameter's gradient that one mistake may lose or add twice: those of one
// rank, one microbatch, one use of the parameter, or any two or three of these.
//
// Contributions are numbered as in reference::Contributions. With tied embeddings use 0 is the output layer,
// use 1 the embedding.
#pragma once

#include <string>
#include <vector>

namespace gatherfuzz {

class SourceGroups {
 public:
  static constexpr int kAll = -1;
  struct Group {
    int rank = kAll, microbatch = kAll, use = kAll;
  };

  SourceGroups(int ranks, int microbatches, std::size_t sources)
      : ranks_(ranks),
        microbatches_(microbatches),
        uses_(static_cast<int>(sources) / (ranks * microbatches)) {}

  // Of one contribution.
  Group of(std::size_t source) const;
  bool contains(const Group& group, std::size_t source) const;
  // All but that of everything; with one rank, that of everything is that of the rank.
  std::vector<Group> from_small_to_large() const;
  // "rank 1, microbatch 0, as the embedding"; what there is one of is not named, but for the rank.
  std::string text(const Group& group) const;

 private:
  int ranks_, microbatches_, uses_;
};

}  // namespace gatherfuzz
