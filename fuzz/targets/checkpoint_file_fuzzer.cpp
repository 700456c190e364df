// Any bytes, read as a file of a checkpoint. A manifest that is read is written as the same bytes; tensors
// that are read lie in the file, and written anew they read as the same tensors.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fuzz/targets/target.h"
#include "impl/checkpoint/manifest.h"
#include "impl/checkpoint/safetensors.h"

namespace {

using namespace gatherfuzz;

[[noreturn, gnu::noinline]] void reader_disagrees(const char* what) {
  std::fprintf(stderr, "gatherfuzz: %s\n", what);
  std::abort();
}

// An error says what was expected and what was found, or why nothing could be read.
template <class T>
void demand_reason(const Checked<T>& checked) {
  if (error_of(checked).text.empty()) reader_disagrees("a file was refused without a reason");
}

bool same(const Tensor& a, const Tensor& b) {
  return a.name == b.name && a.type == b.type && a.shape == b.shape &&
         std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end());
}

void read_manifest(std::string_view text) {
  const Checked<Manifest> manifest = parse_manifest(text);
  if (value_of(manifest) == nullptr) return demand_reason(manifest);
  if (write_manifest(*value_of(manifest)) != text) reader_disagrees("a manifest is written as other bytes");
}

void read_tensors(std::span<const uint8_t> bytes) {
  const Checked<std::vector<Tensor>> tensors = parse_safetensors(bytes);
  if (value_of(tensors) == nullptr) return demand_reason(tensors);
  for (const Tensor& tensor : *value_of(tensors))
    if (!tensor.data.empty() && (tensor.data.data() < bytes.data() ||
                                 tensor.data.data() + tensor.data.size() > bytes.data() + bytes.size()))
      reader_disagrees("a tensor lies outside of its file");
  const std::string written = write_safetensors(*value_of(tensors));
  const auto again = parse_safetensors({reinterpret_cast<const uint8_t*>(written.data()), written.size()});
  if (value_of(again) == nullptr) reader_disagrees("tensors that were read are refused when written");
  if (!std::equal(value_of(tensors)->begin(), value_of(tensors)->end(), value_of(again)->begin(),
                  value_of(again)->end(), same))
    reader_disagrees("tensors are other ones when written and read again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, std::size_t size) {
  read_manifest({reinterpret_cast<const char*>(data), size});
  read_tensors({data, size});
  return 0;
}
