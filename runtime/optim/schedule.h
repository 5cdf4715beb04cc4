#pragma once
#include <cstdint>
#include <optional>

#include "runtime/config/schedule_settings.h"
#include "runtime/optim/optimizer.h"

namespace dstrain::optim {

/// The learning rate of update `step` (from 1), a function of the step alone.
///
/// DeepSpeed's schedules advance after an update: update 1 has their initial rate, update s their
/// rate at iteration last_batch_iteration + s - 1. Hugging Face's are a factor of the optimizer's
/// rate at s - 1. Both in the order of operations of their originals, to the last digit.
double learning_rate(const config::ScheduleSettings& schedule, std::int64_t step);

/// Adam's betas of update `step` if the schedule sets them (OneCycle); else nothing.
std::optional<rules::Betas> scheduled_betas(const config::ScheduleSettings& schedule,
                                            std::int64_t step);

}  // namespace dstrain::optim
