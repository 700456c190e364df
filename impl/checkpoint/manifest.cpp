#include "impl/checkpoint/manifest.h"

#include <zlib.h>

#include <cstdio>
#include <optional>

#include "impl/checkpoint/json.h"

namespace gatherfuzz {

namespace {

constexpr std::string_view kFormat = "gatherfuzz checkpoint";

uint32_t crc32_of(const void* data, std::size_t size) {
  return static_cast<uint32_t>(crc32_z(0, static_cast<const Bytef*>(data), size));
}

std::string hex(uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", value);
  return text;
}

CheckpointError refused(Damage damage, const std::string& expected, const std::string& found) {
  return {damage, "expected " + expected + ", found " + found};
}

std::string dumped(const Json& manifest) {
  return manifest.dump(2) + "\n";
}

std::string self_sum(const Json& without_sum) {
  const std::string text = dumped(without_sum);
  return hex(crc32_of(text.data(), text.size()));
}

Json to_json(const Manifest& m) {
  Json files = Json::object();
  for (const auto& [name, sum] : m.files) files[name] = {{"bytes", sum.bytes}, {"crc32", sum.crc32}};
  return {{"format", kFormat},
          {"version", kCheckpointVersion},
          {"step", m.step},
          {"batch", m.batch},
          {"evaluations", m.evaluations},
          {"microbatches", m.microbatches},
          {"flags", m.flags},
          {"files", files}};
}

// Reads what to_json wrote; anything of another kind is left out, and then shows as a difference.
Manifest from_json(const Json& json) {
  Manifest m;
  const auto number = [](const Json& object, const char* name, auto& value) {
    const auto found = object.find(name);
    if (found != object.end() && found->is_number_unsigned())
      value = found->get<std::remove_reference_t<decltype(value)>>();
  };
  number(json, "step", m.step);
  number(json, "batch", m.batch);
  number(json, "evaluations", m.evaluations);
  number(json, "microbatches", m.microbatches);
  if (const auto flags = json.find("flags"); flags != json.end() && flags->is_object())
    for (const auto& [name, value] : flags->items())
      if (value.is_string()) m.flags[name] = value.get<std::string>();
  if (const auto files = json.find("files"); files != json.end() && files->is_object()) {
    for (const auto& [name, value] : files->items()) {
      if (!value.is_object()) continue;
      number(value, "bytes", m.files[name].bytes);
      number(value, "crc32", m.files[name].crc32);
    }
  }
  return m;
}

}  // namespace

FileSum sum_of(std::span<const uint8_t> bytes) {
  return {bytes.size(), crc32_of(bytes.data(), bytes.size())};
}

Checked<std::monostate> check_sum(const FileSum& expected, std::span<const uint8_t> bytes) {
  if (bytes.size() < expected.bytes)
    return refused(Damage::truncated, std::to_string(expected.bytes) + " bytes",
                   std::to_string(bytes.size()));
  if (bytes.size() > expected.bytes)
    return refused(Damage::size, std::to_string(expected.bytes) + " bytes", std::to_string(bytes.size()));
  const FileSum found = sum_of(bytes);
  if (found != expected) return refused(Damage::checksum, "CRC32 " + hex(expected.crc32), hex(found.crc32));
  return std::monostate{};
}

std::string write_manifest(const Manifest& manifest) {
  Json json = to_json(manifest);
  const std::string sum = self_sum(json);
  json["self_crc32"] = sum;
  return dumped(json);
}

Checked<Manifest> parse_manifest(std::string_view text) {
  if (text.size() > kLargestManifest)
    return refused(Damage::size, "at most " + std::to_string(kLargestManifest) + " bytes",
                   std::to_string(text.size()));
  const Checked<Json> parsed = parse_json_object(text);
  if (value_of(parsed) == nullptr) return error_of(parsed);
  Json json = *value_of(parsed);
  const std::string format = json.value("/format"_json_pointer, Json()).dump();
  if (format != Json(kFormat).dump())
    return refused(Damage::header, "the format " + excerpt(kFormat), excerpt(format));
  const std::string version = json.value("/version"_json_pointer, Json()).dump();
  if (version != std::to_string(kCheckpointVersion))
    return refused(Damage::version, "version " + std::to_string(kCheckpointVersion), excerpt(version));
  const std::string sum = json.value("/self_crc32"_json_pointer, Json()).dump();
  json.erase("self_crc32");
  if (sum != Json(self_sum(json)).dump())
    return refused(Damage::checksum, "self_crc32 " + self_sum(json), excerpt(sum));
  Manifest manifest = from_json(json);
  if (write_manifest(manifest) != text)
    return refused(Damage::header, "a manifest as this tool writes it",
                   "another layout, name or kind of value");
  return manifest;
}

}  // namespace gatherfuzz
