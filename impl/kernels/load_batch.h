// The loader: fills a microbatch's static token and target buffers from the dataset.
#pragma once

#include "impl/kernels/dataset.h"
#include "impl/runtime/op_type.h"

namespace gatherfuzz {

// The terms of what is loaded.
Term tokens_term(int32_t rank, int32_t microbatch, int32_t batch);
Term targets_term(int32_t rank, int32_t microbatch, int32_t batch);

struct LoadBatch {
  static constexpr const char* kName = "load_batch";
  Write<int32_t, Content::batch> tokens;   // [micro_batch_size, seq_length]
  Write<int32_t, Content::batch> targets;  // likewise, one token ahead
  const Dataset* dataset = nullptr;        // must live until the op has run; unused on `symbolic`
  int32_t rank = 0;
  int32_t microbatch = 0;
  int32_t batch = 0;  // evaluation: evaluation_batch(i)
  int32_t seq_length = 0;

  void host(HostMemory& memory) const;
  // tokens_term and targets_term, labelled with rank, microbatch and batch.
  void symbolic(SymbolicMemory& memory) const;
};

}  // namespace gatherfuzz
