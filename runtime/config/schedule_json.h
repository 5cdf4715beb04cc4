#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "runtime/config/schedule_settings.h"

namespace dstrain::config {

/// The schedule as a JSON object: "type", and its parameters by the names of DeepSpeed's
/// configuration, or Hugging Face's warmup_steps and total_steps where they matter.
std::string schedule_json(const ScheduleSettings& schedule);

/// Its "type" there: "WarmupLR", or "linear" of Hugging Face's.
std::string_view schedule_name(const ScheduleSettings& schedule);

/// The kind with this name; nothing when there is none.
std::optional<HuggingFaceSchedule::Kind> hugging_face_schedule(std::string_view name);

}  // namespace dstrain::config
