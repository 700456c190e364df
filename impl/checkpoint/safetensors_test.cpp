#include "impl/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

namespace gatherfuzz {
namespace {

std::span<const uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A file with this header, and so many bytes of data.
std::string file_with(const std::string& header, std::size_t data) {
  const uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data, 'x');
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets +
         "}";
}

void expect_refused(const std::string& file, Damage damage, const std::string& found) {
  const auto parsed = parse_safetensors(bytes_of(file));
  ASSERT_EQ(value_of(parsed), nullptr) << file.substr(8);
  EXPECT_EQ(name_of(error_of(parsed).damage), name_of(damage)) << error_of(parsed).text;
  EXPECT_NE(error_of(parsed).text.find("expected "), std::string::npos) << error_of(parsed).text;
  EXPECT_NE(error_of(parsed).text.find("found " + found), std::string::npos) << error_of(parsed).text;
}

TEST(Safetensors, ReadsWhatItWrote) {
  const std::vector<uint8_t> data = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<Tensor> tensors = {{"w", TensorType::f32, {1, 2}, std::span(data).first(8)},
                                       {"b", TensorType::bf16, {2}, std::span(data).last(4)},
                                       {"none", TensorType::i64, {0}, {}}};
  const std::string file = write_safetensors(tensors);
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_NE(file.find("\"__metadata__\":{\"format\":\"pt\"}"), std::string::npos);
  const auto parsed = parse_safetensors(bytes_of(file));
  ASSERT_NE(value_of(parsed), nullptr) << error_of(parsed).text;
  ASSERT_EQ(value_of(parsed)->size(), 3u);
  for (const Tensor& wanted : tensors) {
    const auto found = std::find_if(value_of(parsed)->begin(), value_of(parsed)->end(),
                                    [&](const Tensor& t) { return t.name == wanted.name; });
    ASSERT_NE(found, value_of(parsed)->end());
    EXPECT_EQ(found->type, wanted.type);
    EXPECT_EQ(found->shape, wanted.shape);
    EXPECT_TRUE(std::equal(found->data.begin(), found->data.end(), wanted.data.begin(), wanted.data.end()));
  }
}

TEST(Safetensors, HeaderLengthsAreHeldToTheFile) {
  expect_refused("short", Damage::truncated, "5");
  expect_refused(file_with("{}", 0).substr(0, 9), Damage::truncated, "1");
  std::string huge = file_with("{}", 0);
  huge[6] = 1;
  expect_refused(huge, Damage::header_length, "281474976710658");
}

TEST(Safetensors, HeadersThatAreNoHeadersAreRefused) {
  expect_refused(file_with("", 0), Damage::header, "\"\"");
  expect_refused(file_with("[]", 0), Damage::header, "\"[]\"");
  expect_refused(file_with("{\"a\":", 0), Damage::header, "what is not");
  expect_refused(file_with("{\"a\":1}", 0), Damage::header, "\"1\"");
  expect_refused(file_with("{" + entry("a", "F32", "[1]", "[0]") + "}", 4), Damage::header, "\"[0]\"");
  const std::string deep(1 << 20, '[');
  const auto parsed = parse_safetensors(bytes_of(file_with("{\"a\":" + deep, 0)));
  ASSERT_EQ(value_of(parsed), nullptr);
  EXPECT_EQ(error_of(parsed).damage, Damage::header);
}

TEST(Safetensors, EachWrongEntryIsNamed) {
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return file_with("{" + entry("a", dtype, shape, offsets) + "}", 4);
  };
  expect_refused(one("F64", "[1]", "[0,4]"), Damage::dtype, "\"\\\"F64\\\"\"");
  expect_refused(one("F32", "[2]", "[0,4]"), Damage::shape, "4");
  expect_refused(one("F32", "[-1]", "[0,4]"), Damage::shape, "\"[-1]\"");
  expect_refused(one("F32", "[4294967296,4294967296]", "[0,4]"), Damage::shape, "4");
  expect_refused(one("F32", "[2]", "[0,8]"), Damage::out_of_range, "[0, 8)");
  expect_refused(one("F32", "[1]", "[4,0]"), Damage::out_of_range, "[4, 0)");
}

TEST(Safetensors, TensorsShareNoBytesAndLeaveNone) {
  const std::string a = entry("a", "F32", "[1]", "[0,4]");
  expect_refused(file_with("{" + a + "," + entry("b", "BF16", "[1]", "[2,4]") + "}", 4), Damage::overlap,
                 "2");
  expect_refused(file_with("{" + a + "," + entry("b", "F32", "[1]", "[0,4]") + "}", 4), Damage::overlap, "0");
  expect_refused(file_with("{" + a + "," + entry("b", "BF16", "[1]", "[6,8]") + "}", 8), Damage::gap, "6");
  expect_refused(file_with("{" + a + "}", 6), Damage::gap, "none after 4");
}

TEST(Safetensors, ANameComesOnce) {
  const std::string a = entry("a", "F32", "[1]", "[0,4]");
  expect_refused(file_with("{" + a + "," + a + "}", 4), Damage::duplicate_name, "\"a\" twice");
  expect_refused(
      file_with("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4),
      Damage::duplicate_name, "\"dtype\" twice");
}

// A file that is cut anywhere is refused: what is missing is header, or data that a tensor needs.
TEST(Safetensors, EveryTruncationIsRefused) {
  const std::vector<uint8_t> data(12, 7);
  const std::string file = write_safetensors({{"w", TensorType::f32, {3}, data}});
  for (std::size_t n = 0; n < file.size(); ++n)
    EXPECT_EQ(value_of(parse_safetensors(bytes_of(file.substr(0, n)))), nullptr) << n;
}

}  // namespace
}  // namespace gatherfuzz
