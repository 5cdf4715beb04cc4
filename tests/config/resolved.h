#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/resolve.h"
#include "tests/config/support.h"

namespace dstrain::test {

using Arguments = std::vector<std::string>;

/// What a configuration (empty: none) and training options amount to.
inline config::Resolved resolved(const std::string& text,
                                 const Arguments& flags = {},
                                 const config::Context& context = {.world_size = 2, .hidden = 64}) {
  const config::DsConfig config =
      text.empty() ? config::DsConfig() : config::DsConfig::parse(text, "ds.json");
  return config::resolve_config(config::read_train_flags(flags), config, context);
}

inline config::TrainSettings settings_of(const std::string& text,
                                         const Arguments& flags = {},
                                         const config::Context& context = {.world_size = 2,
                                                                           .hidden = 64}) {
  return resolved(text, flags, context).settings;
}

inline std::string error_of(const std::string& text, const Arguments& flags = {}) {
  return message_of([&] { settings_of(text, flags); });
}

/// Of a run that is updated by AdamW.
inline rules::Adam::Settings adam(const config::TrainSettings& settings) {
  return std::get<rules::Adam::Settings>(settings.optimizer.rule);
}

/// What is wrong with training options alone.
inline std::string options_error(const Arguments& arguments) {
  return message_of([&] { config::read_train_flags(arguments); });
}

/// "5 file": an effective value and where it comes from; empty when there is none.
inline std::string origin_of(const config::Resolved& result, std::string_view path) {
  for (const config::EffectiveValue& value : result.effective) {
    if (value.path == path) return value.json + " " + value.origin;
  }
  return {};
}

}  // namespace dstrain::test
