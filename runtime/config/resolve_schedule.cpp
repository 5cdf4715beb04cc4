#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "runtime/config/resolver.h"
#include "runtime/config/schedule_json.h"

namespace dstrain::config {
namespace {

/// The option of Hugging Face that stands for a type of DeepSpeed; empty where it has none.
std::string_view hugging_face_name(std::string_view type) {
  if (type == WarmupLr::name) return "constant_with_warmup";
  return type == WarmupDecayLr::name ? "linear" : "";
}

/// A momentum that grows after the cycle must stay below 1 up to the last step.
bool momentum_reaches_one(const OneCycle& cycle, std::int64_t iterations) {
  const std::int64_t after =
      iterations - cycle.cycle_first_step_size - cycle.cycle_second_step_size;
  if (!cycle.cycle_momentum || cycle.decay_step_size == 0 || after <= 0) return false;
  const double decay = static_cast<double>(after) / static_cast<double>(cycle.decay_step_size);
  return cycle.cycle_max_mom * (1 + cycle.decay_mom_rate * decay) >= 1;
}

}  // namespace

void Resolver::resolve_schedule() {
  ScheduleSettings& schedule = result_.settings.schedule;
  schedule.learning_rate = result_.settings.optimizer.learning_rate;
  const Flag<double>& steps = options_.warmup_steps;
  if (steps.value > 0 && options_.warmup_ratio.value > 0) {
    problems_.warn({}, options_.warmup_ratio.typed_as,
                   fmt::format("has no effect: {} counts", steps.typed_as));
  }
  if (config_.is_faulty("scheduler.type")) return;
  if (config_.has("scheduler")) {
    resolve_deepspeed_schedule();
  } else {
    schedule.kind = hugging_face_schedule();
  }
}

HuggingFaceSchedule Resolver::hugging_face_schedule() {
  using Kind = HuggingFaceSchedule::Kind;
  const Flag<std::string>& type = options_.lr_scheduler_type;
  const Flag<double>& warmup = warmup_flag();
  HuggingFaceSchedule schedule{.kind = config::hugging_face_schedule(type.value).value(),
                               .warmup_steps = warmup_steps().value_or(unknown_steps),
                               .total_steps = training_steps().value_or(unknown_steps)};
  if (warmup.typed() && !type.typed()) {
    schedule.kind = Kind::linear;
    problems_.warn({}, warmup.typed_as,
                   "the schedule is Hugging Face's default, linear: up in the warmup, then down to "
                   "0 at the last step; --lr_scheduler_type gives another");
  } else if (warmup.value > 0 && schedule.kind == Kind::constant) {
    problems_.warn({}, warmup.typed_as,
                   fmt::format("has no effect: {} is constant", type.typed_as));
  }
  const double rate = result_.settings.optimizer.learning_rate;
  if (schedule.kind == Kind::polynomial && rate <= HuggingFaceSchedule::polynomial_end) {
    problems_.add({}, type.typed_as,
                  fmt::format("polynomial ends at the rate {}; the rate {} must be more",
                              HuggingFaceSchedule::polynomial_end, rate));
  }
  return schedule;
}

void Resolver::resolve_deepspeed_schedule() {
  const std::string type = config_.text_of("scheduler.type").value_or("");
  const Flag<std::string>& typed = options_.lr_scheduler_type;
  if (typed.typed() && typed.value != hugging_face_name(type)) {
    problems_.add(config_.position("scheduler.type"), "scheduler.type",
                  fmt::format("is {} here, but {} is {} on the command line; give one of them",
                              type, typed.typed_as, typed.value));
  }
  decided_json("scheduler.type", fmt::format("\"{}\"", type), "file");
  ScheduleSettings& schedule = result_.settings.schedule;
  schedule.last_batch_iteration = pick("scheduler.params.last_batch_iteration", -1, -1);
  if (type == WarmupLr::name) {
    schedule.kind = resolve_warmup_lr({});
  } else if (type == WarmupDecayLr::name) {
    schedule.kind = resolve_warmup_decay_lr();
  } else if (type == WarmupCosineLr::name) {
    schedule.kind = resolve_warmup_cosine_lr();
  } else if (type == LrRangeTest::name) {
    schedule.kind = resolve_lr_range_test();
  } else {
    schedule.kind = resolve_one_cycle();
  }
}

WarmupLr Resolver::resolve_warmup_lr(std::optional<double> default_max_lr) {
  const std::string lowest = "scheduler.params.warmup_min_lr";
  const std::string highest = "scheduler.params.warmup_max_lr";
  WarmupLr warmup{.warmup_min_lr = pick(lowest, Flag<double>{}, 0)};
  const std::optional<double> given = config_.number(highest);
  check_agreement(highest, given, options_.learning_rate);
  const bool derived = config_.is_auto(highest) || !default_max_lr;
  const double other = derived ? result_.settings.optimizer.learning_rate : *default_max_lr;
  warmup.warmup_max_lr = given.value_or(other);
  decided(highest, warmup.warmup_max_lr, given ? "file" : derived ? "derived" : "default");
  warmup.warmup_num_steps = resolve_warmup_num_steps();
  warmup.warmup_type = resolve_warmup_type();
  return warmup;
}

WarmupDecayLr Resolver::resolve_warmup_decay_lr() {
  const std::string highest = "scheduler.params.warmup_max_lr";
  const double rate = result_.settings.optimizer.learning_rate;
  const double deepspeed_default = WarmupLr{}.warmup_max_lr;
  if (!config_.has(highest) && rate != deepspeed_default) {
    problems_.warn(config_.position("scheduler.type"), highest,
                   fmt::format("is not given: the rate rises to DeepSpeed's default, {}, and not "
                               "to the optimizer's {}; \"auto\" is that one",
                               deepspeed_default, rate));
  }
  WarmupDecayLr schedule{.warmup = resolve_warmup_lr(deepspeed_default)};
  schedule.total_num_steps = resolve_total_num_steps(schedule.warmup.warmup_num_steps);
  return schedule;
}

WarmupCosineLr Resolver::resolve_warmup_cosine_lr() {
  const std::string in = "scheduler.params.";
  WarmupCosineLr schedule;
  schedule.warmup_num_steps = resolve_warmup_num_steps();
  schedule.total_num_steps = resolve_total_num_steps(schedule.warmup_num_steps);
  schedule.warmup_min_ratio = pick(in + "warmup_min_ratio", schedule.warmup_min_ratio);
  schedule.cos_min_ratio = pick(in + "cos_min_ratio", schedule.cos_min_ratio);
  schedule.warmup_type = resolve_warmup_type();
  return schedule;
}

LrRangeTest Resolver::resolve_lr_range_test() {
  const std::string in = "scheduler.params.lr_range_test_";
  warn_overruled(LrRangeTest::name);
  LrRangeTest test;
  test.min_lr = pick(in + "min_lr", test.min_lr);
  test.step_size = pick(in + "step_size", -1, test.step_size);
  test.step_rate = pick(in + "step_rate", test.step_rate);
  test.staircase = pick(in + "staircase", test.staircase);
  return test;
}

OneCycle Resolver::resolve_one_cycle() {
  const std::string in = "scheduler.params.";
  warn_overruled(OneCycle::name);
  OneCycle cycle;
  cycle.cycle_min_lr = pick(in + "cycle_min_lr", cycle.cycle_min_lr);
  cycle.cycle_max_lr = pick(in + "cycle_max_lr", cycle.cycle_max_lr);
  cycle.decay_lr_rate = pick(in + "decay_lr_rate", cycle.decay_lr_rate);
  cycle.cycle_first_step_size = pick(in + "cycle_first_step_size", -1, cycle.cycle_first_step_size);
  cycle.cycle_second_step_size =
      pick(in + "cycle_second_step_size", -1, cycle.cycle_first_step_size);
  cycle.cycle_first_stair_count =
      pick(in + "cycle_first_stair_count", -1, cycle.cycle_first_stair_count);
  cycle.cycle_second_stair_count =
      pick(in + "cycle_second_stair_count", -1, cycle.cycle_first_stair_count);
  cycle.decay_step_size = pick(in + "decay_step_size", -1, cycle.decay_step_size);
  cycle.cycle_momentum = pick(in + "cycle_momentum", cycle.cycle_momentum);
  cycle.cycle_min_mom = pick(in + "cycle_min_mom", cycle.cycle_min_mom);
  cycle.cycle_max_mom = pick(in + "cycle_max_mom", cycle.cycle_max_mom);
  cycle.decay_mom_rate = pick(in + "decay_mom_rate", cycle.decay_mom_rate);

  const std::int64_t first = result_.settings.schedule.last_batch_iteration;
  if (momentum_reaches_one(cycle, first + training_steps().value_or(0))) {
    problems_.add(config_.position(in + "decay_mom_rate"), in + "decay_mom_rate",
                  "lets the momentum grow to 1 before the last step; make it smaller");
  }
  const bool betas = config_.has("optimizer.params.betas") || options_.adam_beta1.typed() ||
                     options_.adam_beta2.typed();
  if (cycle.cycle_momentum && betas) {
    problems_.warn(config_.position("scheduler.type"), in + "cycle_momentum",
                   "sets Adam's betas at each step: the first between cycle_min_mom and "
                   "cycle_max_mom, the second to 0.99; what is given for them has no effect");
  }
  return cycle;
}

/// What the rate does not depend on under LRRangeTest and OneCycle.
void Resolver::warn_overruled(std::string_view type) {
  for (const Flag<double>* const flag : {&options_.learning_rate, &warmup_flag()}) {
    if (!flag->typed()) continue;
    problems_.warn({}, flag->typed_as, fmt::format("has no effect: {} sets the rate", type));
  }
}

std::int64_t Resolver::resolve_warmup_num_steps() {
  constexpr std::string_view path = "scheduler.params.warmup_num_steps";
  constexpr std::int64_t fewest = 2;  // DeepSpeed's own floor: log(1) would be 0
  const std::optional<std::int64_t> given = config_.integer(path);
  const Flag<double>& flag = warmup_flag();
  const std::optional<std::int64_t> wanted = warmup_steps();
  if (given && flag.typed() && wanted && *wanted != *given) {
    const bool part = static_cast<double>(*wanted) != flag.value;
    disagree(path, fmt::format("{}", *given), flag.typed_as,
             fmt::format("{}{}", flag.value, part ? fmt::format(" ({} steps)", *wanted) : ""));
  }
  const bool from_options = !given && (flag.typed() || config_.is_auto(path));
  if (from_options && !wanted) {
    decided_json(path, "\"auto\"", "derived");
    return unknown_steps;
  }
  const std::int64_t steps = given ? *given : from_options ? *wanted : WarmupLr{}.warmup_num_steps;
  decided(path, std::max(fewest, steps), given ? "file" : from_options ? "derived" : "default");
  return std::max(fewest, steps);
}

std::int64_t Resolver::resolve_total_num_steps(std::int64_t warmup_num_steps) {
  constexpr std::string_view path = "scheduler.params.total_num_steps";
  const std::optional<std::int64_t> given = config_.integer(path);
  const std::optional<std::int64_t> run = training_steps();
  if (!given && !run) {
    decided_json(path, "\"auto\"", "derived");
    return unknown_steps;
  }
  const std::int64_t total = given ? *given : *run;
  decided(path, total, given ? "file" : "derived");
  if (run && total != *run) {
    problems_.warn(
        config_.position(path), path,
        fmt::format("is {}, but the run has {} steps; \"auto\" is their number", total, *run));
  }
  if (total < warmup_num_steps) {
    problems_.warn(config_.position(path), path,
                   fmt::format("is {}, less than the {} of warmup_num_steps: the rate falls to its "
                               "end at once after the warmup",
                               total, warmup_num_steps));
  }
  return total;
}

WarmupType Resolver::resolve_warmup_type() {
  constexpr std::string_view path = "scheduler.params.warmup_type";
  const std::optional<std::string> given = config_.text_of(path);
  const bool linear = given == "linear";
  decided_json(path, linear ? "\"linear\"" : "\"log\"", given ? "file" : "default");
  return linear ? WarmupType::linear : WarmupType::log;
}

const Flag<double>& Resolver::warmup_flag() const {
  const bool steps = options_.warmup_steps.value > 0 || !options_.warmup_ratio.typed();
  return steps ? options_.warmup_steps : options_.warmup_ratio;
}

/// As Hugging Face's get_warmup_steps().
std::optional<std::int64_t> Resolver::warmup_steps() const {
  const Flag<double>& flag = warmup_flag();
  const bool whole = &flag == &options_.warmup_steps && flag.value >= 1;
  if (whole) return static_cast<std::int64_t>(flag.value);
  if (flag.value <= 0) return 0;
  const std::optional<std::int64_t> steps = training_steps();
  if (!steps) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(flag.value * static_cast<double>(*steps)));
}

std::optional<std::int64_t> Resolver::training_steps() const {
  const std::int64_t batch = result_.settings.train_batch_size;
  const bool known = context_.train_samples > 0 && batch > 0;
  if (options_.max_steps.value <= 0 && !known) return std::nullopt;
  return config::training_steps(options_.max_steps.value, options_.num_train_epochs.value,
                                known ? context_.train_samples / batch : 0);
}

}  // namespace dstrain::config
