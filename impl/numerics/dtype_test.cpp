#include "impl/numerics/dtype.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace gatherfuzz {
namespace {

template <typename T>
void expect_dtype(DType dtype, const std::string& name) {
  EXPECT_EQ(dtype_of<T>, dtype);
  EXPECT_EQ(size_of(dtype), sizeof(T));
  EXPECT_EQ(name_of(dtype), name);
}

TEST(DType, NamesAndSizesFollowTheTypes) {
  expect_dtype<std::uint8_t>(DType::u8, "u8");
  expect_dtype<std::int32_t>(DType::i32, "i32");
  expect_dtype<std::uint64_t>(DType::u64, "u64");
  expect_dtype<float>(DType::f32, "f32");
  expect_dtype<double>(DType::f64, "f64");
  expect_dtype<bf16>(DType::bf16, "bf16");
  expect_dtype<e4m3>(DType::e4m3, "e4m3");
  expect_dtype<e8m0>(DType::e8m0, "e8m0");
}

TEST(DType, EveryEnumeratorHasItsOwnName) {
  std::set<std::string> names;
  for (int i = 0; i < kNumDTypes; ++i) names.insert(name_of(static_cast<DType>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kNumDTypes));
  EXPECT_EQ(names.count("invalid"), 0u);
  EXPECT_STREQ(name_of(static_cast<DType>(kNumDTypes)), "invalid");
}

}  // namespace
}  // namespace gatherfuzz
