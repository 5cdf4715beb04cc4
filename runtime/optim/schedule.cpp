#include "runtime/optim/schedule.h"

#include <algorithm>
#include <cmath>

namespace dstrain::optim {
namespace {

using config::ScheduleSettings;

/// How far the warmup is at update `step`: 0 at its start, 1 at its end and after.
double warmup_share(const ScheduleSettings& schedule, std::int64_t step) {
  const bool deepspeed = schedule.kind == ScheduleSettings::Kind::warmup_lr;
  const std::int64_t at = deepspeed ? step - 2 : step - 1;
  const std::int64_t over = std::max<std::int64_t>(deepspeed ? 2 : 1, schedule.warmup_num_steps);
  if (at <= 0) return 0;
  if (at >= over) return 1;
  const auto done = static_cast<double>(at);
  const auto all = static_cast<double>(over);
  return deepspeed && !schedule.warmup_linear ? std::log(done + 1) / std::log(all) : done / all;
}

}  // namespace

double learning_rate(const ScheduleSettings& schedule, double base_rate, std::int64_t step) {
  if (schedule.kind == ScheduleSettings::Kind::constant) return base_rate;
  return schedule.warmup_min_lr +
         (schedule.warmup_max_lr - schedule.warmup_min_lr) * warmup_share(schedule, step);
}

}  // namespace dstrain::optim
