#pragma once
// For tests: blocks of 32 bf16 (as bits) run through both planes' matrix functions and the definition.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "impl/numerics/definitions_for_tests.h"
#include "impl/numerics/mx.h"

namespace gatherfuzz {

// Collects blocks and, in batches, compares what the matrix functions make of them with the definition:
// rowwise, the batch is a matrix [blocks, 32]; columnwise, its transpose [32, blocks].
class MxChecker {
 public:
  explicit MxChecker(ScaleRounding rounding) : rounding_(rounding) {}

  // `elements` are the 32 bf16 of a block, as bits.
  void add(const std::array<std::uint16_t, kMxBlock>& elements) {
    source_.insert(source_.end(), elements.begin(), elements.end());
    if (source_.size() == kBatch * kMxBlock) flush();
  }

  // Compares what is left, filled up with zeros. Call once, at the end.
  void finish() {
    if (source_.empty()) return;
    source_.resize(kBatch * kMxBlock);
    flush();
  }

  // Elements compared in each plane, and the first difference found: empty if there is none.
  std::int64_t compared() const { return compared_; }
  testing::AssertionResult result() const { return result_; }

 private:
  static constexpr std::size_t kBatch = 1024;

  void flush() {
    std::vector<bf16> rows(source_.size());
    std::vector<bf16> columns(source_.size());
    for (std::size_t b = 0; b < kBatch; ++b) {
      for (std::size_t i = 0; i < kMxBlock; ++i) {
        rows[b * kMxBlock + i] = columns[i * kBatch + b] = bf16{source_[b * kMxBlock + i]};
      }
    }
    std::vector<e4m3> row_data(source_.size());
    std::vector<e4m3> column_data(source_.size());
    std::vector<e8m0> row_scales(kBatch);
    std::vector<e8m0> column_scales(kBatch);
    mx_quantize_rowwise(rows.data(), kBatch, kMxBlock, rounding_, row_data.data(), row_scales.data());
    mx_quantize_columnwise(columns.data(), kMxBlock, kBatch, rounding_, column_data.data(),
                           column_scales.data());
    for (std::size_t b = 0; b < kBatch; ++b) {
      const definition::Block expected =
          definition::quantize(&source_[b * kMxBlock], rounding_ == ScaleRounding::up);
      expect("rowwise scale", b, 0, expected.scale, row_scales[b].bits);
      expect("columnwise scale", b, 0, expected.scale, column_scales[b].bits);
      for (std::size_t i = 0; i < kMxBlock; ++i) {
        expect("rowwise element", b, i, expected.data[i], row_data[b * kMxBlock + i].bits);
        expect("columnwise element", b, i, expected.data[i], column_data[i * kBatch + b].bits);
        ++compared_;
      }
    }
    source_.clear();
  }

  void expect(const char* what, std::size_t block, std::size_t i, int expected, int found) {
    if (expected == found || !result_) return;
    result_ = testing::AssertionFailure() << what << " " << i << ": expected code " << expected << ", found "
                                          << found << "; bf16 bits of the block:";
    for (std::size_t k = 0; k < kMxBlock; ++k) result_ << " " << source_[block * kMxBlock + k];
  }

  ScaleRounding rounding_;
  std::vector<std::uint16_t> source_;
  std::int64_t compared_ = 0;
  testing::AssertionResult result_ = testing::AssertionSuccess();
};

}  // namespace gatherfuzz
