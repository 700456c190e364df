#include "impl/kernels/load_batch.h"

namespace gatherfuzz {

namespace {

Term batch_term(int32_t rank, int32_t microbatch, int32_t batch) {
  return mix(mix(mix("batch"_term, static_cast<Term>(rank)), static_cast<Term>(microbatch)),
             static_cast<Term>(batch));
}

}  // namespace

Term tokens_term(int32_t rank, int32_t microbatch, int32_t batch) {
  return mix(batch_term(rank, microbatch, batch), 1);
}
Term targets_term(int32_t rank, int32_t microbatch, int32_t batch) {
  return mix(batch_term(rank, microbatch, batch), 2);
}

void LoadBatch::host(HostMemory& memory) const {
  int32_t* token = memory.out<int32_t>(tokens);
  int32_t* target = memory.out<int32_t>(targets);
  const auto rows = static_cast<int32_t>(tokens.count()) / seq_length;
  for (int32_t row = 0; row < rows; ++row)
    dataset->sample(rank, microbatch, batch, row, seq_length, token + row * seq_length,
                    target + row * seq_length);
}

void LoadBatch::symbolic(SymbolicMemory& memory) const {
  const Label label = make_label(static_cast<uint32_t>(rank), static_cast<uint32_t>(microbatch),
                                 static_cast<uint32_t>(batch));
  memory.assign(tokens, tokens_term(rank, microbatch, batch), label);
  memory.assign(targets, targets_term(rank, microbatch, batch), label);
}

}  // namespace gatherfuzz
