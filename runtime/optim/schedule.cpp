#include "runtime/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <variant>

namespace dstrain::optim {
namespace {

using config::HuggingFaceSchedule;
using config::LrRangeTest;
using config::OneCycle;
using config::ScheduleSettings;
using config::WarmupCosineLr;
using config::WarmupDecayLr;
using config::WarmupLr;
using config::WarmupType;

// Each rate_at() gives the rate at `iteration`, DeepSpeed's last_batch_iteration: -1 at the first
// update of a run. `own` is the optimizer's rate.

/// How far the warmup is, from 0 to 1.
double warmup_share(WarmupType type, std::int64_t iteration, std::int64_t warmup_steps) {
  const auto at = static_cast<double>(iteration);
  const auto all = static_cast<double>(warmup_steps);
  return type == WarmupType::linear ? at / all : 1.0 / std::log(all) * std::log(at + 1);
}

double rate_between(const WarmupLr& warmup, double share) {
  return warmup.warmup_min_lr + (warmup.warmup_max_lr - warmup.warmup_min_lr) * share;
}

double rate_at(const WarmupLr& warmup, std::int64_t iteration, double /*own*/ = 0) {
  if (iteration < 0) return warmup.warmup_min_lr;
  const bool rising = iteration < warmup.warmup_num_steps;
  return rate_between(
      warmup, rising ? warmup_share(warmup.warmup_type, iteration, warmup.warmup_num_steps) : 1.0);
}

double rate_at(const WarmupDecayLr& schedule, std::int64_t iteration, double /*own*/) {
  const WarmupLr& warmup = schedule.warmup;
  if (iteration < warmup.warmup_num_steps) return rate_at(warmup, iteration);
  const std::int64_t falling =
      std::max<std::int64_t>(1, schedule.total_num_steps - warmup.warmup_num_steps);
  const auto left = static_cast<double>(schedule.total_num_steps - iteration);
  return rate_between(warmup, std::max(0.0, left / static_cast<double>(falling)));
}

double cosine_ratio(const WarmupCosineLr& schedule, std::int64_t iteration) {
  if (iteration < 0) return 0;
  const std::int64_t warmup_steps = schedule.warmup_num_steps;
  if (iteration < warmup_steps) {
    return schedule.warmup_min_ratio + warmup_share(schedule.warmup_type, iteration, warmup_steps) *
                                           (1 - schedule.warmup_min_ratio);
  }
  const std::int64_t falling = std::max<std::int64_t>(1, schedule.total_num_steps - warmup_steps);
  const double progress = std::min(
      1.0, static_cast<double>(iteration - warmup_steps + 1) / static_cast<double>(falling));
  const double share = (1 + std::cos(std::numbers::pi * progress)) / 2;
  return std::max(0.0, schedule.cos_min_ratio + (1 - schedule.cos_min_ratio) * share);
}

double rate_at(const WarmupCosineLr& schedule, std::int64_t iteration, double own) {
  return own * cosine_ratio(schedule, iteration);
}

double rate_at(const LrRangeTest& test, std::int64_t iteration, double /*own*/) {
  const double interval = static_cast<double>(iteration + 1) / static_cast<double>(test.step_size);
  return test.min_lr * (1 + test.step_rate * (test.staircase ? std::floor(interval) : interval));
}

/// How far the cycle is from its ends, 0, to its top, 1.
double cycle_share(const OneCycle& cycle, std::int64_t iteration) {
  const auto first = static_cast<double>(cycle.cycle_first_step_size);
  const auto second = static_cast<double>(cycle.cycle_second_step_size);
  const double total = first + second;
  const double top = first / total;
  const auto batch = static_cast<double>(iteration + 1);
  const double x = 1 + batch / total - std::floor(1 + batch / total);
  const bool rising = x <= top;
  const auto stairs =
      static_cast<double>(rising ? cycle.cycle_first_stair_count : cycle.cycle_second_stair_count);
  if (stairs == 0) return rising ? x / top : (x - 1) / (top - 1);
  const double at = std::fmod(batch, total);
  const double stair = at <= first ? at * stairs / first : (total - at) * stairs / second;
  return std::floor(stair) / stairs;
}

/// Steps of decay, in decay_step_size, that are over after the cycle; negative during it.
double decayed(const OneCycle& cycle, std::int64_t iteration) {
  const std::int64_t after = iteration - cycle.cycle_first_step_size - cycle.cycle_second_step_size;
  if (after < 0) return -1;
  if (cycle.decay_step_size == 0) return 0;
  return static_cast<double>(after + 1) / static_cast<double>(cycle.decay_step_size);
}

double rate_at(const OneCycle& cycle, std::int64_t iteration, double /*own*/) {
  const double decay = decayed(cycle, iteration);
  if (decay >= 0) return cycle.cycle_min_lr / (1 + cycle.decay_lr_rate * decay);
  return cycle.cycle_min_lr +
         (cycle.cycle_max_lr - cycle.cycle_min_lr) * cycle_share(cycle, iteration);
}

double momentum_at(const OneCycle& cycle, std::int64_t iteration) {
  const double decay = decayed(cycle, iteration);
  if (decay >= 0) return cycle.cycle_max_mom * (1 + cycle.decay_mom_rate * decay);
  return cycle.cycle_max_mom -
         (cycle.cycle_max_mom - cycle.cycle_min_mom) * cycle_share(cycle, iteration);
}

/// Updates after the warmup; at least 1.
double falling_steps(const HuggingFaceSchedule& schedule) {
  return static_cast<double>(
      std::max<std::int64_t>(1, schedule.total_steps - schedule.warmup_steps));
}

double polynomial_factor(double progress, double own) {
  constexpr double end = HuggingFaceSchedule::polynomial_end;
  return progress > 1 ? end / own : ((own - end) * (1 - progress) + end) / own;
}

double inverse_sqrt_factor(const HuggingFaceSchedule& schedule, std::int64_t done) {
  constexpr std::int64_t without_warmup = 10'000;
  const std::int64_t scale = schedule.warmup_steps > 0 ? schedule.warmup_steps : without_warmup;
  return 1 / std::sqrt(static_cast<double>(done + scale - schedule.warmup_steps) /
                       static_cast<double>(scale));
}

/// The factor of the optimizer's rate after `done` updates.
double factor_at(const HuggingFaceSchedule& schedule, std::int64_t done, double own) {
  using Kind = HuggingFaceSchedule::Kind;
  if (schedule.kind == Kind::constant) return 1;
  if (done < schedule.warmup_steps) {
    return static_cast<double>(done) / static_cast<double>(schedule.warmup_steps);
  }
  const double progress =
      static_cast<double>(done - schedule.warmup_steps) / falling_steps(schedule);
  switch (schedule.kind) {
    case Kind::linear:
      return std::max(0.0,
                      static_cast<double>(schedule.total_steps - done) / falling_steps(schedule));
    case Kind::cosine:
      return std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * progress)));
    case Kind::polynomial:
      return polynomial_factor(progress, own);
    case Kind::inverse_sqrt:
      return inverse_sqrt_factor(schedule, done);
    default:
      return 1;
  }
}

double rate_at(const HuggingFaceSchedule& schedule, std::int64_t iteration, double own) {
  return own * factor_at(schedule, iteration + 1, own);
}

/// DeepSpeed sets no rate before the first update when it goes on after a batch.
bool keeps_optimizer(const ScheduleSettings& schedule, std::int64_t step) {
  return step == 1 && schedule.last_batch_iteration != -1;
}

std::int64_t iteration_of(const ScheduleSettings& schedule, std::int64_t step) {
  return schedule.last_batch_iteration + step - 1;
}

}  // namespace

double learning_rate(const ScheduleSettings& schedule, std::int64_t step) {
  if (keeps_optimizer(schedule, step)) return schedule.learning_rate;
  const std::int64_t iteration = iteration_of(schedule, step);
  return std::visit(
      [&](const auto& kind) { return rate_at(kind, iteration, schedule.learning_rate); },
      schedule.kind);
}

std::optional<rules::Betas> scheduled_betas(const ScheduleSettings& schedule, std::int64_t step) {
  constexpr double beta2 = 0.99;  // independent of the optimizer's
  const auto* const cycle = std::get_if<OneCycle>(&schedule.kind);
  if (cycle == nullptr || !cycle->cycle_momentum || keeps_optimizer(schedule, step)) return {};
  if (step == 1) return rules::Betas{cycle->cycle_min_mom, beta2};  // the other end of the cycle
  return rules::Betas{momentum_at(*cycle, iteration_of(schedule, step)), beta2};
}

}  // namespace dstrain::optim
