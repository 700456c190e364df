#include "impl/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "impl/checkpoint/json.h"

namespace gatherfuzz {

static_assert(std::endian::native == std::endian::little);

namespace {

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::string_view kTypeNames[] = {"F32", "BF16", "I64"};
constexpr std::size_t kTypeSizes[] = {4, 2, 8};
constexpr std::size_t kLengthBytes = sizeof(uint64_t);

CheckpointError refused(Damage damage, std::string expected, const std::string& found) {
  return {damage, "expected " + std::move(expected) + ", found " + found};
}

std::optional<TensorType> type_of(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  for (std::size_t i = 0; i < std::size(kTypeNames); ++i)
    if (value.get_ref<const std::string&>() == kTypeNames[i]) return static_cast<TensorType>(i);
  return std::nullopt;
}

bool are_whole_numbers(const Json& list) {
  return list.is_array() &&
         std::all_of(list.begin(), list.end(), [](const Json& n) { return n.is_number_unsigned(); });
}

// Bytes of a shape; nothing if they do not fit.
std::optional<uint64_t> bytes_of(TensorType type, const std::vector<uint64_t>& shape) {
  uint64_t bytes = size_of(type);
  for (const uint64_t n : shape)
    if (__builtin_mul_overflow(bytes, n, &bytes)) return std::nullopt;
  return bytes;
}

// One entry of the header; `data`: all that follows the header.
Checked<Tensor> parse_entry(const std::string& name, const Json& entry, std::span<const uint8_t> data) {
  const std::string where = excerpt(name);
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets"))
    return refused(Damage::header, "dtype, shape and data_offsets of " + where, excerpt(entry.dump()));
  const std::optional<TensorType> type = type_of(entry["dtype"]);
  if (!type) return refused(Damage::dtype, "F32, BF16 or I64 for " + where, excerpt(entry["dtype"].dump()));
  const Json& shape = entry["shape"];
  if (!are_whole_numbers(shape))
    return refused(Damage::shape, "whole numbers as the shape of " + where, excerpt(shape.dump()));
  const Json& offsets = entry["data_offsets"];
  if (!are_whole_numbers(offsets) || offsets.size() != 2)
    return refused(Damage::header, "two data_offsets for " + where, excerpt(offsets.dump()));
  Tensor tensor{name, *type, shape.get<std::vector<uint64_t>>(), {}};
  const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  if (begin > end || end > data.size())
    return refused(Damage::out_of_range, "data of " + where + " in [0, " + std::to_string(data.size()) + ")",
                   "[" + std::to_string(begin) + ", " + std::to_string(end) + ")");
  const std::optional<uint64_t> bytes = bytes_of(*type, tensor.shape);
  if (!bytes || *bytes != end - begin)
    return refused(Damage::shape,
                   (bytes ? std::to_string(*bytes) : "countable") + " bytes for " + where + ", " +
                       shape_text(*type, tensor.shape),
                   std::to_string(end - begin));
  tensor.data = data.subspan(begin, end - begin);
  return tensor;
}

// In the order of their bytes, tensors must follow each other from the first byte to the last.
std::optional<CheckpointError> cover(std::vector<Tensor>& tensors, std::span<const uint8_t> data) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
    return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
  });
  std::size_t end = 0;
  for (const Tensor& tensor : tensors) {
    const auto begin = static_cast<std::size_t>(tensor.data.data() - data.data());
    if (begin != end)
      return refused(begin < end ? Damage::overlap : Damage::gap,
                     excerpt(tensor.name) + " to begin at byte " + std::to_string(end),
                     std::to_string(begin));
    end += tensor.data.size();
  }
  if (end == data.size()) return std::nullopt;
  return refused(Damage::gap, "tensors up to byte " + std::to_string(data.size()),
                 "none after " + std::to_string(end));
}

}  // namespace

std::string_view name_of(TensorType type) {
  return kTypeNames[static_cast<std::size_t>(type)];
}

std::size_t size_of(TensorType type) {
  return kTypeSizes[static_cast<std::size_t>(type)];
}

std::string shape_text(TensorType type, const std::vector<uint64_t>& shape) {
  std::string text = std::string(name_of(type)) + " [";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string write_safetensors(const std::vector<Tensor>& tensors) {
  Json header = {{kMetadata, {{"format", "pt"}}}};
  uint64_t end = 0;
  for (const Tensor& tensor : tensors) {
    header[tensor.name] = {{"dtype", name_of(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {end, end + tensor.data.size()}}};
    end += tensor.data.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');  // aligns the data
  const uint64_t length = text.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kLengthBytes);
  bytes.reserve(kLengthBytes + text.size() + end);
  bytes += text;
  for (const Tensor& tensor : tensors)
    bytes.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  return bytes;
}

Checked<std::vector<Tensor>> parse_safetensors(std::span<const uint8_t> bytes) {
  if (bytes.size() < kLengthBytes)
    return refused(Damage::truncated, std::to_string(kLengthBytes) + " bytes of header length",
                   std::to_string(bytes.size()));
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kLargestSafetensorsHeader)
    return refused(Damage::header_length,
                   "a header of at most " + std::to_string(kLargestSafetensorsHeader) + " bytes",
                   std::to_string(length));
  const std::span<const uint8_t> rest = bytes.subspan(kLengthBytes);
  if (length > rest.size())
    return refused(Damage::truncated, std::to_string(length) + " bytes of header",
                   std::to_string(rest.size()));
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), length);
  const Checked<Json> header = parse_json_object(text);
  if (value_of(header) == nullptr) return error_of(header);
  const std::span<const uint8_t> data = rest.subspan(length);

  std::vector<Tensor> tensors;
  for (const auto& [name, entry] : value_of(header)->items()) {
    if (name == kMetadata) continue;
    Checked<Tensor> tensor = parse_entry(name, entry, data);
    if (value_of(tensor) == nullptr) return error_of(tensor);
    tensors.push_back(std::get<Tensor>(std::move(tensor)));
  }
  if (std::optional<CheckpointError> error = cover(tensors, data)) return *error;
  return tensors;
}

}  // namespace gatherfuzz
