// The learning rate as a function of the number of steps taken: up in a line from 0, then constant or down to
// min_lr, in a line or along half a cosine. Megatron's definition (OptimizerParamScheduler): the rate belongs
// to the steps taken so far, so that the first step of a warmup moves nothing.
#pragma once

namespace gatherfuzz::reference {

enum class LrDecayStyle { constant, linear, cosine };

struct LrSchedule {
  double lr = 0.001;
  int warmup_steps = 0;  // after so many steps the rate is lr
  LrDecayStyle decay_style = LrDecayStyle::constant;
  int decay_steps = 0;  // after so many steps, warmup included, it is min_lr; unused if constant
  double min_lr = 0.0;
};

double learning_rate(const LrSchedule& schedule, int steps_taken);

}  // namespace gatherfuzz::reference
