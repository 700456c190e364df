#include "properties/source_groups.h"

#include <gtest/gtest.h>

namespace gatherfuzz {
namespace {

std::vector<std::string> texts(const SourceGroups& groups) {
  std::vector<std::string> texts;
  for (const SourceGroups::Group& group : groups.from_small_to_large()) texts.push_back(groups.text(group));
  return texts;
}

TEST(SourceGroups, AreThoseOfRanksMicrobatchesAndUses) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(texts({1, 1, 1}), Texts{"rank 0"});
  EXPECT_EQ(texts({2, 1, 2}), (Texts{"rank 0", "rank 1"}));
  EXPECT_EQ(texts({1, 2, 2}), (Texts{"rank 0, microbatch 0", "rank 0, microbatch 1", "rank 0"}));
  EXPECT_EQ(texts({2, 1, 4}), (Texts{"rank 0, as the output's weight", "rank 0, as the embedding",
                                     "rank 1, as the output's weight", "rank 1, as the embedding",
                                     "every rank, as the output's weight", "every rank, as the embedding",
                                     "rank 0", "rank 1"}));
  EXPECT_EQ(texts({3, 2, 12}).size(), 4u * 3 * 3 - 1);
}

TEST(SourceGroups, OneContributionIsOfOneRankMicrobatchAndUse) {
  const SourceGroups groups(3, 2, 12);
  EXPECT_EQ(groups.text(groups.of(0)), "rank 0, microbatch 0, as the output's weight");
  EXPECT_EQ(groups.text(groups.of(7)), "rank 1, microbatch 1, as the embedding");
  EXPECT_EQ(SourceGroups(2, 2, 4).text(SourceGroups(2, 2, 4).of(2)), "rank 1, microbatch 0");
  for (std::size_t i = 0; i < 12; ++i)
    for (std::size_t j = 0; j < 12; ++j) EXPECT_EQ(groups.contains(groups.of(i), j), i == j);
}

TEST(SourceGroups, ContainWhatTheyName) {
  const SourceGroups groups(3, 2, 12);
  const auto members = [&](const SourceGroups::Group& group) {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < 12; ++i)
      if (groups.contains(group, i)) found.push_back(i);
    return found;
  };
  EXPECT_EQ(members({1, SourceGroups::kAll, SourceGroups::kAll}), (std::vector<std::size_t>{4, 5, 6, 7}));
  EXPECT_EQ(members({SourceGroups::kAll, 1, 0}), (std::vector<std::size_t>{2, 6, 10}));
}

}  // namespace
}  // namespace gatherfuzz
