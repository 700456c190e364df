// The reference trained beside the implementation: same initial params, same batches, its own rounding from
// then on.
#pragma once

#include "impl/kernels/dataset.h"
#include "impl/training/flags.h"
#include "reference/trainer.h"

namespace gatherfuzz {

class FreeRun {
 public:
  // `dataset` must outlive it. Flags must have been validated.
  FreeRun(const Flags& flags, const Dataset& dataset);

  // Trains on the next batch; returns the mean loss.
  float step();

 private:
  Flags flags_;
  const Dataset& dataset_;
  int batch_ = 0;
  reference::Trainer trainer_;
};

}  // namespace gatherfuzz
