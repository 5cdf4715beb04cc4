#pragma once
#include <cstdint>

#include "runtime/config/train_settings.h"

namespace dstrain::optim {

/// The learning rate of update `step` (from 1). As in DeepSpeed the scheduler advances after the
/// update: update 1 runs at the initial rate, update s at the rate of scheduler step s - 2.
/// WarmupLR from min to max over N = max(2, warmup_num_steps): at scheduler step i < N the share
/// of the way is log(i + 1) / log(N), or i / N when linear; 1 from there on.
double learning_rate(const config::ScheduleSettings& schedule, double base_rate, std::int64_t step);

}  // namespace dstrain::optim
