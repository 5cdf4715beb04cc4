#pragma once
#include <cstdint>

#include "runtime/config/train_settings.h"

namespace dstrain::optim {

/// The learning rate of update `step` (from 1).
///
/// warmup_lr, as DeepSpeed's WarmupLR: the scheduler advances after the update, so update 1 runs at
/// the minimum and update s at the rate of scheduler step i = s - 2, which goes from min to max
/// over N = max(2, warmup_num_steps): the share of the way is log(i + 1) / log(N), or i / N when
/// linear. constant_with_warmup, as Hugging Face's: max * min(1, (s - 1) / max(1,
/// warmup_num_steps)).
double learning_rate(const config::ScheduleSettings& schedule, double base_rate, std::int64_t step);

}  // namespace dstrain::optim
