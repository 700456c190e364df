#include "impl/kernels/main_params.h"

#include <cstring>

namespace gatherfuzz {

namespace {

uint64_t hash_index(uint64_t seed, uint32_t param, uint32_t index) {
  return mix(mix(seed, param + 1u), index + 1u);
}

}  // namespace

Term initial_main_term(uint64_t seed, uint32_t param) {
  return mix(mix("init_main_params"_term, seed), param);
}

Term staged_term(Term main, DType dtype) {
  return dtype == DType::f32 ? main : mix("bf16"_term, main);
}

float initial_value(uint64_t seed, uint32_t param, uint32_t index, float deviation, float constant) {
  uint64_t bits = hash_index(seed, param, index);
  float sum = 0.0f;
  for (int i = 0; i < 4; ++i, bits >>= 16) sum += static_cast<float>(bits & 0xFFFF) / 65536.0f - 0.5f;
  return constant + sum * deviation * 1.7320508f;  // four uniform numbers have variance 4/12
}

void InitMainParams::host(HostMemory& memory) const {
  float* values = memory.out<float>(target);
  for (uint32_t i = 0; i < target.count(); ++i)
    values[i] = to_float(to_bf16(initial_value(seed, param, first_element + i, deviation, constant)));
}

void InitMainParams::symbolic(SymbolicMemory& memory) const {
  Segment value;
  value.term = initial_main_term(seed, param);
  value.begin = target.begin;
  value.offset = first_element * static_cast<uint32_t>(sizeof(float));
  value.element = sizeof(float);
  memory.assign_piece(target.buffer, value, target.end());
}

void CopyMainParams::host(HostMemory& memory) const {
  memory.store(target, memory.in<float>(source));
}

void CopyMainParams::symbolic(SymbolicMemory& memory) const {
  const DType dtype = target.dtype;
  map_elements(memory, source, target, [dtype](Term term) { return staged_term(term, dtype); });
}

void CopyState::host(HostMemory& memory) const {
  std::memcpy(memory.data(target), memory.data(source), source.bytes);
}

void CopyState::symbolic(SymbolicMemory& memory) const {
  map_elements(memory, source, target, [](Term term) { return term; });
}

}  // namespace gatherfuzz
