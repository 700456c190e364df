#include "impl/kernels/hash_weights.h"

#include <cstring>

namespace gatherfuzz {

namespace {

// FNV-1a, which every byte changes.
void add_bytes(uint64_t& hash, const HostMemory& memory, const Operand& operand) {
  const std::byte* bytes = memory.data(operand);
  for (uint32_t i = 0; i < operand.bytes; ++i)
    hash = (hash ^ static_cast<uint64_t>(bytes[i])) * 0x100000001b3u;
}

constexpr uint64_t kStart = 0xcbf29ce484222325u;

}  // namespace

void HashPlanes::host(HostMemory& memory) const {
  uint64_t value = kStart;
  for (const Operand* plane :
       {static_cast<const Operand*>(&rowwise), static_cast<const Operand*>(&rowwise_scale),
        static_cast<const Operand*>(&columnwise), static_cast<const Operand*>(&columnwise_scale)})
    add_bytes(value, memory, *plane);
  *memory.out<uint64_t>(hash) = value;
}

void HashWhole::host(HostMemory& memory) const {
  uint64_t value = kStart;
  add_bytes(value, memory, weight);
  *memory.out<uint64_t>(hash) = value;
}

void CompareHashes::host(HostMemory& memory) const {
  const auto* all = memory.in<uint64_t>(hashes);
  const std::size_t params = hashes.count() / static_cast<uint32_t>(ranks);
  float any = 0.0f;
  for (int r = 1; r < ranks; ++r)
    if (std::memcmp(all, all + static_cast<std::size_t>(r) * params, params * sizeof(uint64_t)) != 0)
      any = 1.0f;
  *memory.out<float>(differ) = any;
}

void CompareHashes::symbolic(SymbolicMemory& memory) const {
  const uint32_t params = hashes.count() / static_cast<uint32_t>(ranks);
  const View<uint64_t> all(hashes);
  Term inputs = 0;
  bool any = false;
  for (uint32_t p = 0; p < params; ++p) {
    const Term first = memory.digest(all.slice(p, 1)).term;
    for (uint32_t r = 0; r < static_cast<uint32_t>(ranks); ++r) {
      const Term term = memory.digest(all.slice(r * params + p, 1)).term;
      any = any || term != first;
      inputs = mix(inputs, term);
    }
  }
  memory.assign(differ, mix("compare_weight_hashes"_term, inputs), kNoLabel, any ? 1 : 0);
}

}  // namespace gatherfuzz
