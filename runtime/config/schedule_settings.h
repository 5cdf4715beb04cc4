#pragma once
#include <cstdint>
#include <string_view>
#include <variant>

namespace dstrain::config {

enum class WarmupType { log, linear };

/// The number of steps depends on unknown data; only when a configuration is inspected.
inline constexpr std::int64_t unknown_steps = -1;

// DeepSpeed's schedules. `name` is scheduler.type; the members are scheduler.params.

struct WarmupLr {
  static constexpr std::string_view name = "WarmupLR";
  double warmup_min_lr = 0;
  double warmup_max_lr = 1e-3;
  std::int64_t warmup_num_steps = 1000;  ///< at least 2
  WarmupType warmup_type = WarmupType::log;
};

struct WarmupDecayLr {
  static constexpr std::string_view name = "WarmupDecayLR";
  WarmupLr warmup;
  std::int64_t total_num_steps = 0;
};

struct WarmupCosineLr {
  static constexpr std::string_view name = "WarmupCosineLR";
  std::int64_t total_num_steps = 0;
  double warmup_min_ratio = 0;
  std::int64_t warmup_num_steps = 1000;  ///< at least 2
  double cos_min_ratio = 1e-4;
  WarmupType warmup_type = WarmupType::log;
};

struct LrRangeTest {
  static constexpr std::string_view name = "LRRangeTest";
  double min_lr = 1e-3;
  std::int64_t step_size = 2000;
  double step_rate = 1;
  bool staircase = false;
};

struct OneCycle {
  static constexpr std::string_view name = "OneCycle";
  double cycle_min_lr = 0;
  double cycle_max_lr = 0;
  double decay_lr_rate = 0;
  std::int64_t cycle_first_step_size = 2000;
  std::int64_t cycle_second_step_size = 2000;
  std::int64_t cycle_first_stair_count = 0;  ///< 0: continuous
  std::int64_t cycle_second_stair_count = 0;
  std::int64_t decay_step_size = 0;  ///< 0: stays at the end of the cycle
  bool cycle_momentum = true;
  double cycle_min_mom = 0.8;
  double cycle_max_mom = 0.9;
  double decay_mom_rate = 0;
};

/// Hugging Face's schedules, --lr_scheduler_type.
struct HuggingFaceSchedule {
  enum class Kind { constant, constant_with_warmup, linear, cosine, polynomial, inverse_sqrt };
  /// The names of the kinds, in the same order.
  static constexpr std::string_view names =
      "constant|constant_with_warmup|linear|cosine|polynomial|inverse_sqrt";
  static constexpr double polynomial_end = 1e-7;  ///< the rate after the last step
  Kind kind = Kind::constant;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;  ///< of the run
};

/// The learning-rate schedule; optim::learning_rate() computes it.
struct ScheduleSettings {
  using Kind = std::
      variant<HuggingFaceSchedule, WarmupLr, WarmupDecayLr, WarmupCosineLr, LrRangeTest, OneCycle>;
  Kind kind{};               ///< default: constant
  double learning_rate = 0;  ///< the optimizer's own
  /// DeepSpeed's schedules begin after this batch. Unless it is -1, the first update uses the
  /// optimizer's own rate and the schedule continues after that batch.
  std::int64_t last_batch_iteration = -1;
};

}  // namespace dstrain::config
