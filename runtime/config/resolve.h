#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/ds_config.h"
#include "runtime/config/kept_batch.h"
#include "runtime/config/train_options.h"
#include "runtime/config/train_settings.h"

namespace dstrain::config {

/// What "auto" depends on besides the options. 0 means unknown: checks that depend on it are
/// skipped. That is for looking at a configuration before a run.
struct Context {
  std::int64_t world_size = 0;
  std::int64_t hidden = 0;         ///< the model's width
  std::int64_t train_samples = 0;  ///< of one epoch; -1: not counted yet, but will be known
  /// For an elastic job, which may have fewer ranks than the given sizes assume.
  std::optional<KeptBatch> kept_batch = std::nullopt;
};

/// One effective value: its key in the configuration, the value as JSON, and its origin: "file",
/// "flag --lr", "default", or "derived" from others.
struct EffectiveValue {
  std::string path;
  std::string json;
  std::string origin;
};

struct Resolved {
  TrainSettings settings;
  std::vector<EffectiveValue> effective;
};

/// Combines options and configuration: defaults, "auto" by the rules of Hugging Face's Trainer, and
/// the batch sizes. Throws Error{config} with all problems, including those of the configuration.
/// If a value is given in both places and differs, the message names both.
Resolved resolve_config(const TrainOptions& options,
                        const DsConfig& config,
                        const Context& context);

/// The same, with the configuration file that the options name.
Resolved resolve(const TrainOptions& options, const Context& context);

/// `accelerate launch` passes settings to its scripts in environment variables, which dstrain does
/// not use. Throws Error{config} with each variable that asks for something else than `settings`,
/// and the option to type for it. resolve() calls it once the ranks are known.
void check_accelerate_environment(const TrainSettings& settings, bool has_configuration);

/// Returns the effective configuration as JSON: "effective" (nested as in a ds_config.json),
/// "origin" of each value by its path, and "warnings".
std::string report_json(const Resolved& resolved);

}  // namespace dstrain::config
