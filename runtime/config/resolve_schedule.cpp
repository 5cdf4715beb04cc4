#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "runtime/config/foreign_remedies.h"
#include "runtime/config/schedule_json.h"
#include "runtime/config/settings_builder.h"

namespace dstrain::config {
namespace {

/// Returns Hugging Face's equivalent of a DeepSpeed type; empty if there is none.
std::string_view hugging_face_name(std::string_view type) {
  if (type == WarmupLr::name) return "constant_with_warmup";
  return type == WarmupDecayLr::name ? "linear" : "";
}

/// If momentum grows after the cycle, it must stay below 1 until the last step.
bool momentum_reaches_one(const OneCycle& cycle, std::int64_t iterations) {
  const std::int64_t after =
      iterations - cycle.cycle_first_step_size - cycle.cycle_second_step_size;
  if (!cycle.cycle_momentum || cycle.decay_step_size == 0 || after <= 0) return false;
  const double decay = static_cast<double>(after) / static_cast<double>(cycle.decay_step_size);
  return cycle.cycle_max_mom * (1 + cycle.decay_mom_rate * decay) >= 1;
}

/// Returns --warmup_steps or --warmup_ratio, whichever applies.
const Flag<double>& warmup_flag(const SettingsBuilder& builder) {
  const bool steps =
      builder.options().warmup_steps.value > 0 || !builder.options().warmup_ratio.typed();
  return steps ? builder.options().warmup_steps : builder.options().warmup_ratio;
}

/// Returns the warmup steps, like Hugging Face's get_warmup_steps(). Nothing if they are a fraction
/// of an unknown number.
std::optional<std::int64_t> warmup_steps(const SettingsBuilder& builder) {
  const Flag<double>& flag = warmup_flag(builder);
  const bool whole = &flag == &builder.options().warmup_steps && flag.value >= 1;
  if (whole) return static_cast<std::int64_t>(flag.value);
  if (flag.value <= 0) return 0;
  const std::optional<std::int64_t> steps = builder.training_steps();
  if (!steps) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(flag.value * static_cast<double>(*steps)));
}

HuggingFaceSchedule resolve_hugging_face_schedule(SettingsBuilder& builder) {
  using Kind = HuggingFaceSchedule::Kind;
  const Flag<std::string>& type = builder.options().lr_scheduler_type;
  const Flag<double>& warmup = warmup_flag(builder);
  HuggingFaceSchedule schedule{.kind = hugging_face_schedule(type.value).value(),
                               .warmup_steps = warmup_steps(builder).value_or(unknown_steps),
                               .total_steps = builder.training_steps().value_or(unknown_steps)};
  if (warmup.value > 0 && schedule.kind == Kind::constant) {
    builder.problems().warn({}, warmup.typed_as,
                            fmt::format("has no effect: {} is constant", type.typed_as));
  }
  const double rate = builder.settings().schedule.learning_rate;
  if (schedule.kind == Kind::polynomial && rate <= HuggingFaceSchedule::polynomial_end) {
    builder.problems().add({}, type.typed_as,
                           fmt::format("polynomial ends at the rate {}; the rate {} must be more",
                                       HuggingFaceSchedule::polynomial_end, rate));
  }
  return schedule;
}

/// Warns of options that the rate ignores under LRRangeTest and OneCycle.
void warn_overruled(SettingsBuilder& builder, std::string_view type) {
  for (const Flag<double>* const flag : {&builder.options().learning_rate, &warmup_flag(builder)}) {
    if (!flag->typed()) continue;
    builder.problems().warn({}, flag->typed_as,
                            fmt::format("has no effect: {} sets the rate", type));
  }
}

std::int64_t resolve_warmup_num_steps(SettingsBuilder& builder) {
  constexpr std::string_view path = "scheduler.params.warmup_num_steps";
  constexpr std::int64_t fewest = 2;  // DeepSpeed's minimum: log(1) would be 0
  const std::optional<std::int64_t> given = builder.config().integer(path);
  const Flag<double>& flag = warmup_flag(builder);
  const std::optional<std::int64_t> wanted = warmup_steps(builder);
  if (given && flag.typed() && wanted && *wanted != *given) {
    const bool part = static_cast<double>(*wanted) != flag.value;
    builder.disagree(
        path, fmt::format("{}", *given), flag.typed_as,
        fmt::format("{}{}", flag.value, part ? fmt::format(" ({} steps)", *wanted) : ""));
  }
  const bool from_options = !given && (flag.typed() || builder.config().is_auto(path));
  if (from_options && !wanted) {
    builder.decided_json(path, "\"auto\"", "derived");
    return unknown_steps;
  }
  const std::int64_t steps = given ? *given : from_options ? *wanted : WarmupLr{}.warmup_num_steps;
  builder.decided(path, std::max(fewest, steps),
                  given          ? "file"
                  : from_options ? "derived"
                                 : "default");
  return std::max(fewest, steps);
}

std::int64_t resolve_total_num_steps(SettingsBuilder& builder, std::int64_t warmup_num_steps) {
  constexpr std::string_view path = "scheduler.params.total_num_steps";
  const std::optional<std::int64_t> given = builder.config().integer(path);
  const std::optional<std::int64_t> run = builder.training_steps();
  if (!given && !run) {
    builder.decided_json(path, "\"auto\"", "derived");
    return unknown_steps;
  }
  const std::int64_t total = given ? *given : *run;
  builder.decided(path, total, given ? "file" : "derived");
  if (run && total != *run) {
    builder.add_warning(
        path,
        fmt::format("is {}, but the run has {} steps; \"auto\" uses that number", total, *run));
  }
  if (total < warmup_num_steps) {
    builder.add_warning(
        path, fmt::format("is {}, less than the {} of warmup_num_steps: the rate falls to its "
                          "end at once after the warmup",
                          total, warmup_num_steps));
  }
  return total;
}

WarmupType resolve_warmup_type(SettingsBuilder& builder) {
  constexpr std::string_view path = "scheduler.params.warmup_type";
  const std::optional<std::string> given = builder.config().text_of(path);
  const bool linear = given == "linear";
  builder.decided_json(path, linear ? "\"linear\"" : "\"log\"", given ? "file" : "default");
  return linear ? WarmupType::linear : WarmupType::log;
}

/// Without a default, the warmup ends at the optimizer's rate.
WarmupLr resolve_warmup_lr(SettingsBuilder& builder, std::optional<double> default_max_lr) {
  const std::string lowest = "scheduler.params.warmup_min_lr";
  const std::string highest = "scheduler.params.warmup_max_lr";
  WarmupLr warmup{.warmup_min_lr = builder.pick(lowest, Flag<double>{}, 0)};
  const std::optional<double> given = builder.config().number(highest);
  builder.check_agreement(highest, given, builder.options().learning_rate);
  const bool derived = builder.config().is_auto(highest) || !default_max_lr;
  const double other = derived ? builder.settings().schedule.learning_rate : *default_max_lr;
  warmup.warmup_max_lr = given.value_or(other);
  builder.decided(highest, warmup.warmup_max_lr, given ? "file" : derived ? "derived" : "default");
  warmup.warmup_num_steps = resolve_warmup_num_steps(builder);
  warmup.warmup_type = resolve_warmup_type(builder);
  return warmup;
}

WarmupDecayLr resolve_warmup_decay_lr(SettingsBuilder& builder) {
  const std::string highest = "scheduler.params.warmup_max_lr";
  const double rate = builder.settings().schedule.learning_rate;
  const double deepspeed_default = WarmupLr{}.warmup_max_lr;
  if (!builder.config().has(highest) && rate != deepspeed_default) {
    builder.problems().warn(builder.config().position("scheduler.type"), highest,
                            fmt::format("is not given: the rate rises to DeepSpeed's default, {}, "
                                        "not to the optimizer's {}; set \"auto\" for that",
                                        deepspeed_default, rate));
  }
  WarmupDecayLr schedule{.warmup = resolve_warmup_lr(builder, deepspeed_default)};
  schedule.total_num_steps = resolve_total_num_steps(builder, schedule.warmup.warmup_num_steps);
  return schedule;
}

WarmupCosineLr resolve_warmup_cosine_lr(SettingsBuilder& builder) {
  const std::string in = "scheduler.params.";
  WarmupCosineLr schedule;
  schedule.warmup_num_steps = resolve_warmup_num_steps(builder);
  schedule.total_num_steps = resolve_total_num_steps(builder, schedule.warmup_num_steps);
  schedule.warmup_min_ratio = builder.pick(in + "warmup_min_ratio", schedule.warmup_min_ratio);
  schedule.cos_min_ratio = builder.pick(in + "cos_min_ratio", schedule.cos_min_ratio);
  schedule.warmup_type = resolve_warmup_type(builder);
  return schedule;
}

LrRangeTest resolve_lr_range_test(SettingsBuilder& builder) {
  const std::string in = "scheduler.params.lr_range_test_";
  warn_overruled(builder, LrRangeTest::name);
  LrRangeTest test;
  test.min_lr = builder.pick(in + "min_lr", test.min_lr);
  test.step_size = builder.pick(in + "step_size", -1, test.step_size);
  test.step_rate = builder.pick(in + "step_rate", test.step_rate);
  test.staircase = builder.pick(in + "staircase", test.staircase);
  return test;
}

OneCycle resolve_one_cycle(SettingsBuilder& builder) {
  const std::string in = "scheduler.params.";
  warn_overruled(builder, OneCycle::name);
  OneCycle cycle;
  cycle.cycle_min_lr = builder.pick(in + "cycle_min_lr", cycle.cycle_min_lr);
  cycle.cycle_max_lr = builder.pick(in + "cycle_max_lr", cycle.cycle_max_lr);
  cycle.decay_lr_rate = builder.pick(in + "decay_lr_rate", cycle.decay_lr_rate);
  cycle.cycle_first_step_size =
      builder.pick(in + "cycle_first_step_size", -1, cycle.cycle_first_step_size);
  cycle.cycle_second_step_size =
      builder.pick(in + "cycle_second_step_size", -1, cycle.cycle_first_step_size);
  cycle.cycle_first_stair_count =
      builder.pick(in + "cycle_first_stair_count", -1, cycle.cycle_first_stair_count);
  cycle.cycle_second_stair_count =
      builder.pick(in + "cycle_second_stair_count", -1, cycle.cycle_first_stair_count);
  cycle.decay_step_size = builder.pick(in + "decay_step_size", -1, cycle.decay_step_size);
  cycle.cycle_momentum = builder.pick(in + "cycle_momentum", cycle.cycle_momentum);
  cycle.cycle_min_mom = builder.pick(in + "cycle_min_mom", cycle.cycle_min_mom);
  cycle.cycle_max_mom = builder.pick(in + "cycle_max_mom", cycle.cycle_max_mom);
  cycle.decay_mom_rate = builder.pick(in + "decay_mom_rate", cycle.decay_mom_rate);

  const std::int64_t first = builder.settings().schedule.last_batch_iteration;
  if (momentum_reaches_one(cycle, first + builder.training_steps().value_or(0))) {
    builder.add_problem(in + "decay_mom_rate",
                        "lets the momentum grow to 1 before the last step; make it smaller");
  }
  const bool betas = builder.config().has("optimizer.params.betas") ||
                     builder.options().adam_beta1.typed() || builder.options().adam_beta2.typed();
  if (cycle.cycle_momentum && betas) {
    builder.problems().warn(builder.config().position("scheduler.type"), in + "cycle_momentum",
                            "sets Adam's betas at each step: the first between cycle_min_mom and "
                            "cycle_max_mom, the second to 0.99; given betas have no effect");
  }
  return cycle;
}

/// This schedule can express Megatron's cosine, which may end above 0 or before the run.
bool is_cosine_of_megatron(const SettingsBuilder& builder, std::string_view type) {
  const TrainOptions& options = builder.options();
  return options.lr_scheduler_type.value == "cosine" && type == WarmupCosineLr::name &&
         (options.min_lr.typed() || options.lr_decay_iters.typed());
}

void resolve_deepspeed_schedule(SettingsBuilder& builder) {
  const std::string type = builder.config().text_of("scheduler.type").value_or("");
  const Flag<std::string>& typed = builder.options().lr_scheduler_type;
  if (typed.typed() && typed.value != hugging_face_name(type) &&
      !is_cosine_of_megatron(builder, type)) {
    builder.add_problem(
        "scheduler.type",
        fmt::format("is {} here, but {} is {} {}; give one of them", type, typed.typed_as,
                    typed.value, builder.options().places.phrase(typed.typed_as)));
  }
  builder.decided_json("scheduler.type", fmt::format("\"{}\"", type), "file");
  ScheduleSettings& schedule = builder.settings().schedule;
  schedule.last_batch_iteration = builder.pick("scheduler.params.last_batch_iteration", -1, -1);
  if (type == WarmupLr::name) {
    schedule.kind = resolve_warmup_lr(builder, {});
  } else if (type == WarmupDecayLr::name) {
    schedule.kind = resolve_warmup_decay_lr(builder);
  } else if (type == WarmupCosineLr::name) {
    schedule.kind = resolve_warmup_cosine_lr(builder);
  } else if (type == LrRangeTest::name) {
    schedule.kind = resolve_lr_range_test(builder);
  } else {
    schedule.kind = resolve_one_cycle(builder);
  }
}

/// Returns the last step of a schedule; nothing if it has none or it is unknown.
std::optional<std::int64_t> end_of(const ScheduleSettings& schedule) {
  std::int64_t steps = unknown_steps;
  if (const auto* const own = std::get_if<HuggingFaceSchedule>(&schedule.kind)) {
    using Kind = HuggingFaceSchedule::Kind;
    const bool ends =
        own->kind == Kind::linear || own->kind == Kind::cosine || own->kind == Kind::polynomial;
    if (ends) steps = own->total_steps;
  } else if (const auto* const decay = std::get_if<WarmupDecayLr>(&schedule.kind)) {
    steps = decay->total_num_steps;
  } else if (const auto* const cosine = std::get_if<WarmupCosineLr>(&schedule.kind)) {
    steps = cosine->total_num_steps;
  }
  return steps == unknown_steps ? std::nullopt : std::optional(steps);
}

/// Returns --min_lr as a fraction of the rate.
double last_ratio(SettingsBuilder& builder) {
  const double rate = builder.settings().schedule.learning_rate;
  return rate > 0 ? builder.options().min_lr.value / rate : 0;
}

/// Returns the scheduler section equivalent to Megatron's cosine options.
std::string described_cosine(SettingsBuilder& builder) {
  const Flag<std::int64_t>& steps = builder.options().lr_decay_iters;
  const double ratio = last_ratio(builder);
  return steps.typed() ? cosine_section(ratio, fmt::format("{}", steps.value))
                       : cosine_section(ratio);
}

/// Suggests a configuration for a schedule that ends after --lr_decay_iters; empty: there is none.
std::string earlier_end(SettingsBuilder& builder) {
  using Kind = HuggingFaceSchedule::Kind;
  const auto* const own = std::get_if<HuggingFaceSchedule>(&builder.settings().schedule.kind);
  const std::int64_t steps = builder.options().lr_decay_iters.value;
  if (own == nullptr) {
    return fmt::format(", or set scheduler.params.total_num_steps to {} in the configuration",
                       steps);
  }
  if (own->kind == Kind::polynomial) return {};
  return fmt::format(
      ", or put into the configuration {}",
      own->kind == Kind::cosine
          ? described_cosine(builder)
          : fmt::format(R"("scheduler": {{"type": "WarmupDecayLR", "params": {{"total_num_steps": )"
                        R"({}, "warmup_num_steps": "auto", "warmup_max_lr": "auto", )"
                        R"("warmup_type": "linear"}}}})",
                        steps));
}

/// Checks Megatron's --lr_decay_iters and the option that counts it.
void check_decay_steps(SettingsBuilder& builder) {
  const Flag<std::int64_t>& flag = builder.options().lr_decay_iters;
  if (!flag.typed()) return;
  const std::optional<std::int64_t> end = end_of(builder.settings().schedule);
  if (end && *end != flag.value) {
    builder.problems().add(
        {}, flag.typed_as,
        fmt::format("is {}, but the schedule ends after {} steps; leave it out{}", flag.value, *end,
                    earlier_end(builder)));
  }
  const Flag<double>& ratio = builder.options().warmup_ratio;
  const std::optional<std::int64_t> run = builder.training_steps();
  if (ratio.typed_as != "--lr_warmup_fraction" || !run || *run == flag.value) return;
  builder.problems().add(
      {}, ratio.typed_as,
      fmt::format("is a part of {}, not of the {} steps of the run; give --warmup_steps {}",
                  flag.typed_as, *run, std::ceil(ratio.value * static_cast<double>(flag.value))));
}

/// Checks Megatron's --min_lr, the final rate.
void check_min_lr(SettingsBuilder& builder) {
  const Flag<double>& flag = builder.options().min_lr;
  if (!flag.typed()) return;
  const ScheduleSettings& schedule = builder.settings().schedule;
  const double ratio = last_ratio(builder);
  if (const auto* const cosine = std::get_if<WarmupCosineLr>(&schedule.kind)) {
    constexpr double digits = 1e-5;
    if (std::abs(cosine->cos_min_ratio - ratio) <= digits * ratio) return;
    return builder.add_problem(
        "scheduler.params.cos_min_ratio",
        fmt::format("is {}, but {} {} is {:.6g} of the rate; give one of them",
                    cosine->cos_min_ratio, flag.typed_as, flag.value, ratio));
  }
  if (!end_of(schedule) && !std::holds_alternative<HuggingFaceSchedule>(schedule.kind)) {
    builder.problems().warn({}, flag.typed_as, "has no effect: the scheduler sets the last rate");
    return;
  }
  if (flag.value == 0) return;
  const auto* const own = std::get_if<HuggingFaceSchedule>(&schedule.kind);
  using Kind = HuggingFaceSchedule::Kind;
  if (own != nullptr && (own->kind == Kind::constant || own->kind == Kind::constant_with_warmup)) {
    builder.problems().warn({}, flag.typed_as, "has no effect: the rate stays");
    return;
  }
  const Flag<std::string>& type = builder.options().lr_scheduler_type;
  const bool other = type.typed() && type.value != "cosine";
  builder.problems().add(
      {}, flag.typed_as,
      fmt::format(
          "this schedule does not end at {}; leave it out, or, for a cosine that does,{} put "
          "into the configuration {}",
          flag.value, other ? fmt::format(" leave {} out and", type.typed_as) : "",
          described_cosine(builder)));
}

}  // namespace

void resolve_schedule(SettingsBuilder& builder) {
  ScheduleSettings& schedule = builder.settings().schedule;
  const Flag<double>& steps = builder.options().warmup_steps;
  if (steps.value > 0 && builder.options().warmup_ratio.value > 0) {
    builder.problems().warn({}, builder.options().warmup_ratio.typed_as,
                            fmt::format("has no effect: {} counts", steps.typed_as));
  }
  if (builder.config().is_faulty("scheduler.type")) return;
  if (builder.config().has("scheduler.type")) {
    resolve_deepspeed_schedule(builder);
  } else {
    schedule.kind = resolve_hugging_face_schedule(builder);
  }
  check_decay_steps(builder);
  check_min_lr(builder);
}

}  // namespace dstrain::config
