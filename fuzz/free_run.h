// The reference trained beside the implementation: same initial params, same batches, its own rounding from
// then on.
#pragma once

#include "impl/kernels/dataset.h"
#include "impl/training/training_state.h"
#include "reference/trainer.h"

namespace gatherfuzz {

class FreeRun {
 public:
  // `dataset` must outlive it. Flags must have been validated.
  FreeRun(const Flags& flags, const Dataset& dataset);
  // Goes on from a state of the implementation.
  FreeRun(const Flags& flags, const Dataset& dataset, const TrainingState& start);

  // Trains on the next batch; returns the mean loss.
  float step();

 private:
  FreeRun(const Flags& flags, const Dataset& dataset, std::vector<std::vector<float>> main_params);

  Flags flags_;
  const Dataset& dataset_;
  int batch_ = 0;
  int microbatches_;
  reference::Trainer trainer_;
};

}  // namespace gatherfuzz
