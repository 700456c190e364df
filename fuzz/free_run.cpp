#include "fuzz/free_run.h"

#include "properties/reference_settings.h"

namespace gatherfuzz {

FreeRun::FreeRun(const Flags& flags, const Dataset& dataset)
    : flags_(flags),
      dataset_(dataset),
      trainer_(reference_shape(flags), reference_settings(flags), initial_main_params(flags)) {}

float FreeRun::step() {
  const std::size_t seq = static_cast<std::size_t>(flags_.seq_length);
  const std::size_t tokens = seq * static_cast<std::size_t>(flags_.micro_batch_size);
  std::vector<std::vector<reference::Batch>> batches(static_cast<std::size_t>(flags_.data_parallel_size));
  for (int rank = 0; rank < flags_.data_parallel_size; ++rank) {
    for (int microbatch = 0; microbatch < flags_.num_microbatches; ++microbatch) {
      reference::Batch batch{std::vector<int32_t>(tokens), std::vector<int32_t>(tokens)};
      for (int row = 0; row < flags_.micro_batch_size; ++row) {
        const std::size_t first = static_cast<std::size_t>(row) * seq;
        dataset_.sample(rank, microbatch, batch_, row, flags_.seq_length, &batch.tokens[first],
                        &batch.targets[first]);
      }
      batches[static_cast<std::size_t>(rank)].push_back(std::move(batch));
    }
  }
  ++batch_;
  const double lr = reference::learning_rate(reference_lr_schedule(flags_), trainer_.steps_taken());
  return trainer_.step(batches, static_cast<float>(lr)).loss;
}

}  // namespace gatherfuzz
