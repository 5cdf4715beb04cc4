#include "runtime/config/schedule_json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "runtime/config/schema.h"

namespace dstrain::config {
namespace {

using Json = nlohmann::ordered_json;

const char* warmup_type_name(WarmupType type) {
  return type == WarmupType::linear ? "linear" : "log";
}

Json steps_json(std::int64_t steps) {
  return steps == unknown_steps ? Json("auto") : Json(steps);
}

Json parameters(const WarmupLr& kind) {
  return {{"warmup_min_lr", kind.warmup_min_lr},
          {"warmup_max_lr", kind.warmup_max_lr},
          {"warmup_num_steps", steps_json(kind.warmup_num_steps)},
          {"warmup_type", warmup_type_name(kind.warmup_type)}};
}

Json parameters(const WarmupDecayLr& kind) {
  Json json = parameters(kind.warmup);
  json["total_num_steps"] = steps_json(kind.total_num_steps);
  return json;
}

Json parameters(const WarmupCosineLr& kind) {
  return {{"total_num_steps", steps_json(kind.total_num_steps)},
          {"warmup_min_ratio", kind.warmup_min_ratio},
          {"warmup_num_steps", steps_json(kind.warmup_num_steps)},
          {"cos_min_ratio", kind.cos_min_ratio},
          {"warmup_type", warmup_type_name(kind.warmup_type)}};
}

Json parameters(const LrRangeTest& kind) {
  return {{"lr_range_test_min_lr", kind.min_lr},
          {"lr_range_test_step_size", kind.step_size},
          {"lr_range_test_step_rate", kind.step_rate},
          {"lr_range_test_staircase", kind.staircase}};
}

Json parameters(const OneCycle& kind) {
  Json json{{"cycle_min_lr", kind.cycle_min_lr},
            {"cycle_max_lr", kind.cycle_max_lr},
            {"decay_lr_rate", kind.decay_lr_rate},
            {"cycle_first_step_size", kind.cycle_first_step_size},
            {"cycle_second_step_size", kind.cycle_second_step_size},
            {"cycle_first_stair_count", kind.cycle_first_stair_count},
            {"cycle_second_stair_count", kind.cycle_second_stair_count},
            {"decay_step_size", kind.decay_step_size},
            {"cycle_momentum", kind.cycle_momentum}};
  if (!kind.cycle_momentum) return json;
  json["cycle_min_mom"] = kind.cycle_min_mom;
  json["cycle_max_mom"] = kind.cycle_max_mom;
  json["decay_mom_rate"] = kind.decay_mom_rate;
  return json;
}

Json parameters(const HuggingFaceSchedule& kind) {
  using Kind = HuggingFaceSchedule::Kind;
  Json json = Json::object();
  if (kind.kind == Kind::constant) return json;
  json["warmup_steps"] = steps_json(kind.warmup_steps);
  const bool ends = kind.kind != Kind::constant_with_warmup && kind.kind != Kind::inverse_sqrt;
  if (ends) json["total_steps"] = steps_json(kind.total_steps);
  return json;
}

template <class T>
std::string_view name_of(const T& /*kind*/) {
  return T::name;
}

std::string_view name_of(const HuggingFaceSchedule& kind) {
  return split_choices(HuggingFaceSchedule::names)[static_cast<std::size_t>(kind.kind)];
}

}  // namespace

std::string_view schedule_name(const ScheduleSettings& schedule) {
  return std::visit([](const auto& kind) { return name_of(kind); }, schedule.kind);
}

std::string schedule_json(const ScheduleSettings& schedule) {
  Json json{{"type", schedule_name(schedule)}};
  json.update(std::visit([](const auto& kind) { return parameters(kind); }, schedule.kind));
  if (schedule.last_batch_iteration != -1) {
    json["last_batch_iteration"] = schedule.last_batch_iteration;
  }
  return json.dump();
}

std::optional<HuggingFaceSchedule::Kind> hugging_face_schedule(std::string_view name) {
  const std::vector<std::string_view> names = split_choices(HuggingFaceSchedule::names);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<HuggingFaceSchedule::Kind>(found - names.begin());
}

}  // namespace dstrain::config
