#include "runtime/optim/schedule.h"

#include <algorithm>
#include <cmath>

namespace dstrain::optim {

double learning_rate(const config::ScheduleSettings& schedule,
                     double base_rate,
                     std::int64_t step) {
  if (schedule.kind == config::ScheduleSettings::Kind::constant) return base_rate;
  const std::int64_t i = step - 2;
  const std::int64_t warmup = std::max<std::int64_t>(2, schedule.warmup_num_steps);
  if (i < 0) return schedule.warmup_min_lr;
  double share = 1;
  if (i < warmup) {
    const auto at = static_cast<double>(i);
    const auto over = static_cast<double>(warmup);
    share = schedule.warmup_linear ? at / over : std::log(at + 1) / std::log(over);
  }
  return schedule.warmup_min_lr + (schedule.warmup_max_lr - schedule.warmup_min_lr) * share;
}

}  // namespace dstrain::optim
