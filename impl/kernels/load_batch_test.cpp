// The dataset is a function of its keys alone, and the loader writes it, or its term and label.
#include "impl/kernels/load_batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "impl/kernels/kernel_bench_for_tests.h"

namespace gatherfuzz {
namespace {

struct Sample {
  std::vector<int32_t> tokens, targets;
};

Sample take(const Dataset& dataset, int rank, int microbatch, int batch, int row, int seq = 40) {
  Sample s;
  s.tokens.resize(static_cast<std::size_t>(seq));
  s.targets.resize(static_cast<std::size_t>(seq));
  dataset.sample(rank, microbatch, batch, row, seq, s.tokens.data(), s.targets.data());
  return s;
}

TEST(DatasetTest, EveryKeyMattersAndNothingElse) {
  const Dataset dataset = Dataset::synthetic(97, 5);
  const Sample first = take(dataset, 1, 2, 3, 4);
  EXPECT_EQ(take(Dataset::synthetic(97, 5), 1, 2, 3, 4).tokens, first.tokens);
  const std::set<std::vector<int32_t>> different = {first.tokens,
                                                    take(dataset, 0, 2, 3, 4).tokens,
                                                    take(dataset, 1, 0, 3, 4).tokens,
                                                    take(dataset, 1, 2, 0, 4).tokens,
                                                    take(dataset, 1, 2, 3, 0).tokens,
                                                    take(dataset, 2, 1, 3, 4).tokens,
                                                    take(dataset, 1, 2, evaluation_batch(3), 4).tokens,
                                                    take(Dataset::synthetic(97, 6), 1, 2, 3, 4).tokens};
  EXPECT_EQ(different.size(), 8u);
}

TEST(DatasetTest, TargetsAreTokensShiftedByOneAndInRange) {
  const Dataset dataset = Dataset::synthetic(7, 1);
  for (int batch = 0; batch < 20; ++batch) {
    const Sample s = take(dataset, 0, 0, batch, 0);
    for (std::size_t i = 0; i < s.tokens.size(); ++i) {
      ASSERT_TRUE(s.tokens[i] >= 0 && s.tokens[i] < 7 && s.targets[i] >= 0 && s.targets[i] < 7);
      if (i > 0) {
        ASSERT_EQ(s.tokens[i], s.targets[i - 1]);
      }
    }
  }
}

// A table of the likeliest follower predicts far more than chance (1/32), and not everything.
TEST(DatasetTest, SyntheticDataCanBeLearned) {
  const Dataset dataset = Dataset::synthetic(32, 9);
  std::vector<std::vector<int>> seen(32, std::vector<int>(32));
  int total = 0;
  for (int batch = 0; batch < 200; ++batch) {
    const Sample s = take(dataset, 0, 0, batch, 0);
    for (std::size_t i = 0; i < s.tokens.size(); ++i, ++total)
      ++seen[static_cast<std::size_t>(s.tokens[i])][static_cast<std::size_t>(s.targets[i])];
  }
  int predicted = 0;
  for (const auto& row : seen) predicted += *std::max_element(row.begin(), row.end());
  EXPECT_GT(predicted, total * 7 / 10);
  EXPECT_LT(predicted, total * 9 / 10);
}

TEST(DatasetTest, TextWindows) {
  const std::vector<uint8_t> text = {'n', 'o', ' ', 's', 'o', 'n', 'g'};
  const Dataset dataset = Dataset::text(text, 3);
  EXPECT_EQ(dataset.vocab(), 256);
  std::set<int32_t> starts;
  for (int batch = 0; batch < 100; ++batch) {
    const Sample s = take(dataset, 0, 0, batch, 0, 20);
    std::size_t start = 0;
    while (start < text.size() &&
           !(s.tokens[0] == text[start] && s.tokens[1] == text[(start + 1) % text.size()]))
      ++start;
    ASSERT_LT(start, text.size());
    for (std::size_t i = 0; i < 20; ++i) {
      ASSERT_EQ(s.tokens[i], text[(start + i) % text.size()]);
      ASSERT_EQ(s.targets[i], text[(start + i + 1) % text.size()]);
    }
    starts.insert(static_cast<int32_t>(start));
  }
  EXPECT_EQ(starts.size(), text.size());
}

TEST(LoadBatchTest, HostFillsRowsFromTheDataset) {
  KernelBench bench(1);
  const Dataset dataset = Dataset::synthetic(50, 2);
  const LoadBatch op{bench.view<int32_t>(3 * 8), bench.view<int32_t>(3 * 8), &dataset, 1, 2, 3, 8};
  op.host(bench.memory());
  for (int row = 0; row < 3; ++row) {
    const Sample s = take(dataset, 1, 2, 3, row, 8);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(bench.memory().in<int32_t>(op.tokens)[row * 8 + i], s.tokens[static_cast<std::size_t>(i)]);
      EXPECT_EQ(bench.memory().in<int32_t>(op.targets)[row * 8 + i], s.targets[static_cast<std::size_t>(i)]);
    }
  }
}

TEST(LoadBatchTest, SymbolicTermsAndLabels) {
  SymbolicMemory memory;
  const BufferId buffer = memory.allocate(64, false);
  std::set<Term> terms;
  LoadBatch op{make_view<int32_t>(buffer, 0, 8), make_view<int32_t>(buffer, 32, 8), nullptr, 0, 0, 0, 8};
  for (const auto& [rank, microbatch, batch] : {std::array{1, 2, 3}, std::array{2, 2, 3}, std::array{1, 3, 3},
                                                std::array{1, 2, evaluation_batch(3)}}) {
    op.rank = rank, op.microbatch = microbatch, op.batch = batch;
    op.symbolic(memory);
    const Label label = make_label(static_cast<uint32_t>(rank), static_cast<uint32_t>(microbatch),
                                   static_cast<uint32_t>(batch));
    EXPECT_EQ(memory.digest(op.tokens).label, label);
    EXPECT_EQ(memory.digest(op.targets).label, label);
    terms.insert({memory.digest(op.tokens).term, memory.digest(op.targets).term});
  }
  EXPECT_EQ(terms.size(), 8u);
}

}  // namespace
}  // namespace gatherfuzz
