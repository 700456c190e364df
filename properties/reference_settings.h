// What a program's flags mean to the reference.
#pragma once

#include <vector>

#include "impl/training/flags.h"
#include "reference/lr_schedule.h"
#include "reference/trainer.h"

namespace gatherfuzz {

reference::Shape reference_shape(const Flags& flags);
reference::TrainSettings reference_settings(const Flags& flags);
reference::LrSchedule reference_lr_schedule(const Flags& flags);
// The main params that training begins with, by parameter index: they follow from the seed alone.
std::vector<std::vector<float>> initial_main_params(const Flags& flags);

}  // namespace gatherfuzz
