#include "impl/kernels/load_batch.h"

namespace gatherfuzz {

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
  const Term term = mix(mix(mix("batch"_term, static_cast<Term>(rank)), static_cast<Term>(microbatch)),
                        static_cast<Term>(batch));
  memory.assign(tokens, mix(term, 1), label);
  memory.assign(targets, mix(term, 2), label);
}

}  // namespace gatherfuzz
