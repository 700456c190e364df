// `gatherfuzz train`: a real training run on the bytes of a file, the reference's loss beside it.
#pragma once

#include <string>
#include <vector>

#include "fuzz/check.h"

namespace gatherfuzz {

struct TrainOptions {
  std::string text;  // the file
  int steps = 200;
  std::vector<FlagSetting> set;
  bool reference = true;
  bool checks = true;        // the oracles, one hop at a time
  std::string curve;         // a CSV file: step,loss,reference_loss; empty: none
  std::string plot;          // the same as a picture, an SVG file; empty: none
  std::string checkpoint;    // a folder that gets a checkpoint at the end; empty: none
  int checkpoint_every = 0;  // and after each so many steps
  std::string resume;        // a checkpoint, or the folder of some, to go on from; empty: a fresh model
};

// What `train` sets where the command line does not.
Flags train_defaults();

// Returns the exit code. Throws UsageError, InternalError, Interrupted.
int train(const TrainOptions& options);

}  // namespace gatherfuzz
