#include "impl/training/weight_hashes.h"

#include <string>

#include "impl/kernels/hash_weights.h"
#include "impl/runtime/collective.h"

namespace gatherfuzz {

WeightHashes::WeightHashes(Runtime& runtime, const Assembly& parts) : runtime_(runtime), parts_(parts) {
  const auto count = static_cast<uint32_t>(parts.params.size()) * static_cast<uint32_t>(runtime.world_size());
  hashes_ = make_view<uint64_t>(runtime.allocate("weight hashes", count * 8, Fill::uninitialized), 0, count);
  differ_ = make_view<float>(runtime.allocate("weight hashes differ", 4, Fill::uninitialized), 0, 1);
  hashed_ = runtime.create_event();
  gathered_ = runtime.create_event();
}

void WeightHashes::check() {
  hash_own();
  if (runtime_.world_size() > 1) gather();
  runtime_.launch(parts_.streams.compute, CompareHashes{hashes_, differ_, runtime_.world_size()});
  if (runtime_.read(parts_.streams.compute, differ_).flagged())
    throw WeightsDiffer("check_weight_hashes: ranks hold different weights");
}

void WeightHashes::hash_own() {
  const auto rank = static_cast<uint32_t>(runtime_.rank());
  for (const BufferPair& pair : parts_.buffers) {
    for (const ParamSlot& slot : pair.layout.slots) {
      const View<uint64_t> hash = hash_of(rank, slot.param);
      if (pair.mxfp8) {
        const QuantizedWeight& w = parts_.weights[slot.param];
        runtime_.launch(parts_.streams.compute,
                        HashPlanes{w.rowwise, w.rowwise_scale, w.columnwise, w.columnwise_scale, hash});
      } else {
        runtime_.launch(parts_.streams.compute,
                        HashWhole{pair.param_view(slot.begin, slot.count).tagged(slot.param), hash});
      }
    }
  }
}

void WeightHashes::gather() {
  runtime_.record(hashed_, parts_.streams.compute);
  runtime_.wait(parts_.streams.comm, hashed_);
  runtime_.launch(parts_.streams.comm, all_gather_in_place(hashes_, runtime_.rank(), runtime_.world_size()));
  runtime_.record(gathered_, parts_.streams.comm);
  runtime_.wait(parts_.streams.compute, gathered_);
}

}  // namespace gatherfuzz
