#include "impl/param_gather/buffers.h"

namespace gatherfuzz {

namespace {

BufferPair make_pair(Runtime& runtime, const ParamBufferPlan& plan, bool mxfp8, uint32_t first_bucket) {
  BufferPair pair;
  pair.layout =
      lay_out(mxfp8 ? plan.mxfp8 : plan.whole, plan.rule, static_cast<uint32_t>(runtime.world_size()));
  pair.mxfp8 = mxfp8;
  pair.shared = mxfp8 && plan.share_mxfp8;
  pair.param_dtype = mxfp8 ? DType::bf16 : plan.whole_dtype;
  pair.grad_dtype = plan.grad_dtype;
  pair.first_bucket = first_bucket;
  pair.grad_bytes = pair.layout.elements * static_cast<uint32_t>(size_of(pair.grad_dtype));
  pair.grads = runtime.allocate(
      mxfp8 ? (pair.shared ? "shared param and grad buffer" : "mxfp8 grad buffer") : "grad buffer",
      pair.grad_bytes, Fill::zero);
  pair.params =
      pair.shared ? pair.grads
                  : runtime.allocate(mxfp8 ? "mxfp8 param buffer" : "param buffer",
                                     pair.layout.elements * static_cast<uint32_t>(size_of(pair.param_dtype)),
                                     Fill::zero);
  return pair;
}

}  // namespace

std::vector<BufferPair> make_buffers(Runtime& runtime, const ParamBufferPlan& plan) {
  std::vector<BufferPair> pairs;
  uint32_t first_bucket = 0;
  for (const bool mxfp8 : {true, false}) {
    if ((mxfp8 ? plan.mxfp8 : plan.whole).empty()) continue;
    pairs.push_back(make_pair(runtime, plan, mxfp8, first_bucket));
    first_bucket += static_cast<uint32_t>(pairs.back().layout.buckets.size());
  }
  return pairs;
}

}  // namespace gatherfuzz
