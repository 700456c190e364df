#include "impl/kernels/embedding.h"

#include <algorithm>
#include <cstring>

#include "impl/kernels/accumulate.h"

namespace gatherfuzz {

void Embedding::host(HostMemory& memory) const {
  const int32_t* token = memory.in<int32_t>(tokens);
  const std::size_t row_bytes = static_cast<std::size_t>(hidden) * size_of(x.dtype);
  const auto vocab = static_cast<uint32_t>(table.bytes / row_bytes);
  const std::byte* rows = memory.data(table);
  std::byte* out = memory.data(x);
  for (uint32_t t = 0; t < tokens.count(); ++t, out += row_bytes) {
    const auto row = static_cast<uint32_t>(token[t]);  // negative tokens lie outside, too
    if (row < vocab) {
      std::memcpy(out, rows + row * row_bytes, row_bytes);
    } else {
      std::memset(out, 0xFF, row_bytes);
    }
  }
}

void EmbeddingBackward::host(HostMemory& memory) const {
  const int32_t* token = memory.in<int32_t>(tokens);
  const float* gradient = memory.load(dx);
  const auto width = static_cast<std::size_t>(hidden);
  const uint32_t vocab = main_grad.count() / static_cast<uint32_t>(hidden);
  float* summand = memory.scratch(main_grad.count());
  std::fill_n(summand, main_grad.count(), 0.0f);
  for (uint32_t t = 0; t < tokens.count(); ++t, gradient += width) {
    const auto row = static_cast<uint32_t>(token[t]);
    if (row >= vocab) continue;
    float* sum = summand + row * width;
    for (std::size_t h = 0; h < width; ++h) sum[h] += gradient[h];
  }
  accumulate(memory, main_grad, summand);
}

}  // namespace gatherfuzz
