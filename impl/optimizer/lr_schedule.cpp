#include "impl/optimizer/lr_schedule.h"

#include <cmath>
#include <numbers>

namespace gatherfuzz {

double learning_rate(double lr, const LrSchedule& schedule, int taken) {
  if (schedule.warmup_steps > 0 && taken <= schedule.warmup_steps) return lr * taken / schedule.warmup_steps;
  if (schedule.decay_style == LrDecayStyle::constant) return lr;
  if (taken > schedule.decay_steps) return schedule.min_lr;
  const double ratio = static_cast<double>(taken - schedule.warmup_steps) /
                       static_cast<double>(schedule.decay_steps - schedule.warmup_steps);
  const double coefficient = schedule.decay_style == LrDecayStyle::linear
                                 ? 1.0 - ratio
                                 : 0.5 * (std::cos(std::numbers::pi * ratio) + 1.0);
  return schedule.min_lr + coefficient * (lr - schedule.min_lr);
}

}  // namespace gatherfuzz
