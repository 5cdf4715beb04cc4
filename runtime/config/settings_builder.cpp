#include "runtime/config/settings_builder.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "runtime/base/steps_per_epoch.h"

namespace dstrain::config {

void SettingsBuilder::decided_json(std::string_view path,
                                   std::string json,
                                   const std::string& origin) {
  result_.effective.push_back({std::string(path), std::move(json), origin});
}

void SettingsBuilder::disagree(std::string_view path,
                               const std::string& given,
                               const std::string& flag,
                               const std::string& flag_value) {
  problems_.add(config_.position(path), path,
                fmt::format("is {} here, but {} is {} {}; give one of them, or \"auto\" here",
                            given, flag, flag_value, options_.places.phrase(flag)));
}

template <class T>
T SettingsBuilder::choose(std::string_view path,
                          const std::optional<T>& given,
                          const Flag<T>& flag,
                          T fallback) {
  check_agreement(path, given, flag);
  T value = fallback;
  std::string origin = "default";
  if (given) {
    value = *given;
    origin = "file";
  } else if (flag.typed()) {
    value = flag.value;
    origin = "flag " + flag.typed_as;
  } else if (config_.is_auto(path)) {
    value = flag.value;
  }
  decided(path, value, origin);
  return value;
}

double SettingsBuilder::pick(std::string_view path, const Flag<double>& flag, double fallback) {
  return choose(path, config_.number(path), flag, fallback);
}

bool SettingsBuilder::pick(std::string_view path, const Flag<bool>& flag, bool fallback) {
  return choose(path, config_.boolean(path), flag, fallback);
}

std::int64_t SettingsBuilder::pick(std::string_view path,
                                   const Flag<std::int64_t>& flag,
                                   std::int64_t fallback) {
  return choose(path, config_.integer(path), flag, fallback);
}

std::int64_t SettingsBuilder::pick(std::string_view path,
                                   std::int64_t automatic,
                                   std::int64_t fallback) {
  const std::optional<std::int64_t> given = config_.integer(path);
  const bool computed = config_.is_auto(path) && automatic >= 0;
  const std::int64_t value = given ? *given : computed ? automatic : fallback;
  decided(path, value, given ? "file" : computed ? "derived" : "default");
  return value;
}

bool SettingsBuilder::pick(std::string_view path, bool fallback) {
  const std::optional<bool> given = config_.boolean(path);
  const bool value = given.value_or(fallback);
  decided(path, value, given ? "file" : "default");
  return value;
}

double SettingsBuilder::pick(std::string_view path, double fallback) {
  const std::optional<double> given = config_.number(path);
  decided(path, given.value_or(fallback), given ? "file" : "default");
  return given.value_or(fallback);
}

std::string SettingsBuilder::pick(std::string_view path, const char* fallback) {
  const std::optional<std::string> given = config_.text_of(path);
  decided_json(path, nlohmann::json(given.value_or(fallback)).dump(), given ? "file" : "default");
  return given.value_or(fallback);
}

std::optional<std::int64_t> SettingsBuilder::training_steps() const {
  if (options_.max_steps.value > 0) return options_.max_steps.value;
  const std::int64_t batch = settings().train_batch_size;
  if (context_.train_samples <= 0 || batch <= 0) return std::nullopt;
  const std::int64_t epoch =
      steps_per_epoch(context_.train_samples, batch, settings().data.drop_last);
  constexpr double steps_max = 0x1p53;  // more than any run can take
  return static_cast<std::int64_t>(
      std::min(std::ceil(options_.num_train_epochs.value * static_cast<double>(epoch)), steps_max));
}

Resolved SettingsBuilder::finish() {
  problems_.throw_if_any();
  result_.settings.ds_config_text = config_.text();
  result_.settings.warnings = options_.warnings;
  for (const std::string& line : problems_.warnings()) result_.settings.warnings.push_back(line);
  return std::move(result_);
}

}  // namespace dstrain::config
