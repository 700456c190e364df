#include "impl/kernels/swiglu.h"

#include <cmath>

namespace gatherfuzz {

namespace {

// The exponentials first, so that the rest vectorizes.
void sigmoids(const float* gate, int n, float* sig) {
  for (int i = 0; i < n; ++i) sig[i] = std::exp(-gate[i]);
  for (int i = 0; i < n; ++i) sig[i] = 1.0f / (1.0f + sig[i]);
}

}  // namespace

void Swiglu::host(HostMemory& memory) const {
  const float* gate = memory.load(in);
  float* result = memory.staging(out);
  float* sig = memory.scratch(static_cast<std::size_t>(ffn));
  const uint32_t tokens = out.count() / static_cast<uint32_t>(ffn);
  float* h = result;
  for (uint32_t t = 0; t < tokens; ++t, gate += 2 * ffn, h += ffn) {
    sigmoids(gate, ffn, sig);
    for (int i = 0; i < ffn; ++i) h[i] = (gate[i] * sig[i]) * gate[ffn + i];
  }
  memory.store(out, result);
}

void SwigluBackward::host(HostMemory& memory) const {
  const float* upstream = memory.load(dout);
  const float* gate = memory.load(in);
  float* result = memory.staging(din);
  float* sig = memory.scratch(static_cast<std::size_t>(ffn));
  const uint32_t tokens = dout.count() / static_cast<uint32_t>(ffn);
  float* dgate = result;
  for (uint32_t t = 0; t < tokens; ++t, upstream += ffn, gate += 2 * ffn, dgate += 2 * ffn) {
    sigmoids(gate, ffn, sig);
    for (int i = 0; i < ffn; ++i) {
      dgate[i] = (upstream[i] * gate[ffn + i]) * (sig[i] * (1.0f + gate[i] * (1.0f - sig[i])));
      dgate[ffn + i] = upstream[i] * (gate[i] * sig[i]);
    }
  }
  memory.store(din, result);
}

}  // namespace gatherfuzz
