// The learning rate of a step, as Megatron's OptimizerParamScheduler.get_lr works it out with an init_lr of 0
// and with steps that count one each. In double; what Adam multiplies with is rounded to FP32.
//   taken <= warmup_steps  lr * taken / warmup_steps: the very first step of a warmup has a rate of 0
//   constant               lr
//   taken > decay_steps    min_lr
//   else                   min_lr + c * (lr - min_lr), r = (taken - warmup_steps) / (decay_steps -
//   warmup_steps),
//                          linear: c = 1 - r, cosine: c = (cos(pi * r) + 1) / 2
#pragma once

#include <cstdint>

namespace gatherfuzz {

enum class LrDecayStyle : uint8_t { constant, linear, cosine };

struct LrSchedule {
  int warmup_steps = 0;
  LrDecayStyle decay_style = LrDecayStyle::constant;
  int decay_steps = 0;  // warmup included, and more than it; not looked at if constant
  double min_lr = 0.0;
};

// `taken`: steps taken before this one. A skipped step is none.
double learning_rate(double lr, const LrSchedule& schedule, int taken);

}  // namespace gatherfuzz
