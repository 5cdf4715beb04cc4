#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "runtime/config/resolve.h"

namespace dstrain::config {

/// Builds the settings of a run, section by section. Each pick() takes one value by the rules of
/// Hugging Face's Trainer and records its origin. Options, file and context must outlive it.
class SettingsBuilder {
 public:
  SettingsBuilder(const TrainOptions& options, const DsConfig& config, const Context& context)
      : options_(options), config_(config), context_(context), problems_(config.problems()) {}

  [[nodiscard]] const TrainOptions& options() const { return options_; }
  [[nodiscard]] const DsConfig& config() const { return config_; }
  [[nodiscard]] const Context& context() const { return context_; }
  [[nodiscard]] Problems& problems() { return problems_; }
  [[nodiscard]] TrainSettings& settings() { return result_.settings; }
  [[nodiscard]] const TrainSettings& settings() const { return result_.settings; }

  /// Reports a problem, or a warning, for a key of the file.
  void add_problem(std::string_view path, std::string_view message) {
    problems_.add(config_.position(path), path, message);
  }
  void add_warning(std::string_view path, std::string_view message) {
    problems_.warn(config_.position(path), path, message);
  }

  /// Returns the configuration's value, else the typed option's, else `fallback` (for "auto": the
  /// option's default). A contradiction is a problem.
  double pick(std::string_view path, const Flag<double>& flag, double fallback);
  bool pick(std::string_view path, const Flag<bool>& flag, bool fallback);
  std::int64_t pick(std::string_view path, const Flag<std::int64_t>& flag, std::int64_t fallback);
  /// Returns the configuration's value, else `fallback`. For "auto", returns `automatic` unless it
  /// is negative.
  std::int64_t pick(std::string_view path, std::int64_t automatic, std::int64_t fallback);
  /// Returns the configuration's value, else `fallback`.
  double pick(std::string_view path, double fallback);
  bool pick(std::string_view path, bool fallback);
  std::string pick(std::string_view path, const char* fallback);

  /// Records a value that was decided elsewhere.
  template <class T>
  void decided(std::string_view path, T value, const std::string& origin) {
    decided_json(path, fmt::format("{}", value), origin);
  }
  void decided_json(std::string_view path, std::string json, const std::string& origin);

  /// Reports a value of the file that a typed option contradicts.
  template <class T>
  void check_agreement(std::string_view path, const std::optional<T>& given, const Flag<T>& flag) {
    if (!given || !flag.typed() || *given == flag.value) return;
    disagree(path, fmt::format("{}", *given), flag.typed_as, fmt::format("{}", flag.value));
  }
  void disagree(std::string_view path,
                const std::string& given,
                const std::string& flag,
                const std::string& flag_value);

  /// Returns the optimizer steps of the run, once batch and data are resolved. Nothing if they
  /// depend on unknown data.
  [[nodiscard]] std::optional<std::int64_t> training_steps() const;

  /// Throws Error{config} with every problem. Call once, last.
  Resolved finish();

 private:
  template <class T>
  T choose(std::string_view path, const std::optional<T>& given, const Flag<T>& flag, T fallback);

  const TrainOptions& options_;
  const DsConfig& config_;
  const Context& context_;
  Problems problems_;
  Resolved result_;
};

// The larger parts of the work, each in a source file of its name. They depend on each other in
// this order.
void resolve_batch(SettingsBuilder& builder);
/// fp16, bf16, and the handling of steps that overflow.
void resolve_precision(SettingsBuilder& builder);
void resolve_optimizer(SettingsBuilder& builder);
/// Dtypes of masters, optimizer states and gradients.
void resolve_state_precision(SettingsBuilder& builder);
void resolve_schedule(SettingsBuilder& builder);
/// zero_optimization with its offload sections, and aio.
void resolve_zero(SettingsBuilder& builder);

}  // namespace dstrain::config
