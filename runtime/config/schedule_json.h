#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "runtime/config/schedule_settings.h"

namespace dstrain::config {

/// Returns the schedule as a JSON object: "type", and its parameters by their names in DeepSpeed's
/// configuration, or Hugging Face's warmup_steps and total_steps if they matter.
std::string schedule_json(const ScheduleSettings& schedule);

/// Returns its "type" there: "WarmupLR", or Hugging Face's "linear".
std::string_view schedule_name(const ScheduleSettings& schedule);

/// Returns the kind with this name; nothing if there is none.
std::optional<HuggingFaceSchedule::Kind> hugging_face_schedule(std::string_view name);

}  // namespace dstrain::config
