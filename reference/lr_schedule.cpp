#include "reference/lr_schedule.h"

#include <cmath>

namespace gatherfuzz::reference {

namespace {

constexpr double kPi = 3.14159265358979323846;

// What is left of the way from lr down to min_lr, at `done` of the decay (0 to 1).
double left_of_decay(LrDecayStyle style, double done) {
  switch (style) {
    case LrDecayStyle::constant:
      break;
    case LrDecayStyle::linear:
      return 1.0 - done;
    case LrDecayStyle::cosine:
      return 0.5 * (1.0 + std::cos(kPi * done));
  }
  return 1.0;
}

}  // namespace

double learning_rate(const LrSchedule& s, int steps_taken) {
  const bool warming_up = s.warmup_steps > 0 && steps_taken <= s.warmup_steps;
  if (warming_up) return s.lr * steps_taken / s.warmup_steps;
  if (s.decay_style == LrDecayStyle::constant) return s.lr;
  if (steps_taken >= s.decay_steps) return s.min_lr;
  const double after_warmup = steps_taken - s.warmup_steps;
  const double done = after_warmup / (s.decay_steps - s.warmup_steps);
  return s.min_lr + left_of_decay(s.decay_style, done) * (s.lr - s.min_lr);
}

}  // namespace gatherfuzz::reference
