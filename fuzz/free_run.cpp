#include "fuzz/free_run.h"

#include "properties/reference_settings.h"

namespace gatherfuzz {

namespace {

std::vector<std::vector<float>> values_of(const TrainingState& state, std::vector<float> ParamState::*part) {
  std::vector<std::vector<float>> values;
  for (const ParamState& param : state.params) values.push_back(param.*part);
  return values;
}

}  // namespace

FreeRun::FreeRun(const Flags& flags, const Dataset& dataset)
    : FreeRun(flags, dataset, initial_main_params(flags)) {}

FreeRun::FreeRun(const Flags& flags, const Dataset& dataset, const TrainingState& start)
    : FreeRun(flags, dataset, values_of(start, &ParamState::main)) {
  trainer_.resume(values_of(start, &ParamState::exp_avg), values_of(start, &ParamState::exp_avg_sq),
                  start.step);
  batch_ = static_cast<int>(start.batch);
  microbatches_ = start.microbatches;
}

FreeRun::FreeRun(const Flags& flags, const Dataset& dataset, std::vector<std::vector<float>> main_params)
    : flags_(flags),
      dataset_(dataset),
      microbatches_(flags.num_microbatches),
      trainer_(reference_shape(flags), reference_settings(flags), std::move(main_params)) {}

float FreeRun::step() {
  const std::size_t seq = static_cast<std::size_t>(flags_.seq_length);
  const std::size_t tokens = seq * static_cast<std::size_t>(flags_.micro_batch_size);
  std::vector<std::vector<reference::Batch>> batches(static_cast<std::size_t>(flags_.data_parallel_size));
  for (int rank = 0; rank < flags_.data_parallel_size; ++rank) {
    for (int microbatch = 0; microbatch < microbatches_; ++microbatch) {
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
