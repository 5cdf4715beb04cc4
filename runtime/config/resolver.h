#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "runtime/config/resolve.h"

namespace dstrain::config {

/// The work of resolve_config(), part by part. Everything it decides is written down with its
/// origin.
class Resolver {
 public:
  Resolver(const TrainOptions& options, const DsConfig& config, const Context& context);
  Resolved run();

 private:
  /// The configuration's value, else the typed option's, else `fallback` (for "auto": the option's
  /// default). Disagreement is a problem.
  double pick(std::string_view path, const Flag<double>& flag, double fallback);
  bool pick(std::string_view path, const Flag<bool>& flag, bool fallback);
  std::int64_t pick(std::string_view path, std::int64_t automatic, std::int64_t fallback);
  double pick(std::string_view path, double fallback);
  bool pick(std::string_view path, bool fallback);
  std::string pick(std::string_view path, const char* fallback);
  template <class T>
  T choose(std::string_view path, const std::optional<T>& given, const Flag<T>& flag, T fallback);
  template <class T>
  void decided(std::string_view path, T value, const std::string& origin) {
    decided_json(path, fmt::format("{}", value), origin);
  }
  void decided_json(std::string_view path, std::string json, const std::string& origin);
  template <class T>
  void check_agreement(std::string_view path, const std::optional<T>& given, const Flag<T>& flag) {
    if (!given || !flag.typed() || *given == flag.value) return;
    disagree(path, fmt::format("{}", *given), flag.typed_as, fmt::format("{}", flag.value));
  }
  void disagree(std::string_view path,
                const std::string& given,
                const std::string& flag,
                const std::string& flag_value);

  void resolve_batch();
  void resolve_optimizer();
  void resolve_betas();
  void resolve_clipping();
  void resolve_precision();
  void resolve_schedule();
  void resolve_deepspeed_schedule();
  /// Without a default the warmup ends at the optimizer's rate.
  WarmupLr resolve_warmup_lr(std::optional<double> default_max_lr);
  WarmupDecayLr resolve_warmup_decay_lr();
  WarmupCosineLr resolve_warmup_cosine_lr();
  LrRangeTest resolve_lr_range_test();
  OneCycle resolve_one_cycle();
  std::int64_t resolve_warmup_num_steps();
  std::int64_t resolve_total_num_steps(std::int64_t warmup_num_steps);
  WarmupType resolve_warmup_type();
  void warn_overruled(std::string_view type);
  HuggingFaceSchedule hugging_face_schedule();
  /// --warmup_steps or --warmup_ratio, whichever counts.
  [[nodiscard]] const Flag<double>& warmup_flag() const;
  /// The steps they amount to; nothing when they are a part of a number that is not known.
  [[nodiscard]] std::optional<std::int64_t> warmup_steps() const;
  /// Nothing when they depend on data that are not known.
  [[nodiscard]] std::optional<std::int64_t> training_steps() const;
  void resolve_zero();
  /// The stage is lower, as far as the file tells it.
  [[nodiscard]] bool lacks_stage(int lowest) const;
  void warn_stage(std::string_view path, int lowest_stage, std::string_view meaning);
  void resolve_offload();
  OffloadSettings resolve_offload(std::string_view section,
                                  std::string_view deprecated,
                                  int lowest_stage);
  void warn_idle_offload(const std::string& in, bool has_device);
  void resolve_swapped_optimizer();
  void resolve_swapped_parameters();
  void resolve_activations();
  void resolve_model();
  void resolve_data();
  void resolve_evaluation();
  void resolve_checkpoint();
  [[nodiscard]] Cadence cadence(const std::string& strategy, double steps) const;
  void resolve_aio();
  void resolve_rest();

  const TrainOptions& options_;
  const DsConfig& config_;
  const Context& context_;
  Problems problems_;
  Resolved result_;
};

}  // namespace dstrain::config
