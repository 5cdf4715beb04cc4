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

/// What "auto" depends on besides the options. 0 means not known: then whatever depends on it is
/// left unchecked, for looking at a configuration before a run.
struct Context {
  std::int64_t world_size = 0;
  std::int64_t hidden = 0;         ///< the model's width
  std::int64_t train_samples = 0;  ///< of one epoch; -1: not counted yet, they will be known
  /// Of an elastic job, whose ranks may be fewer than the sizes that are given are meant for.
  std::optional<KeptBatch> kept_batch = std::nullopt;
};

/// One effective value: the configuration's key, the value as JSON, and where it came from:
/// "file", "flag --lr", "default", or "derived" from others.
struct EffectiveValue {
  std::string path;
  std::string json;
  std::string origin;
};

struct Resolved {
  TrainSettings settings;
  std::vector<EffectiveValue> effective;
};

/// Joins options and configuration: defaults, "auto" by the rules of Hugging Face's Trainer, the
/// batch sizes. Throws Error{config} with every problem, those of the configuration included; a
/// value given in both places that disagrees is named with both.
Resolved resolve_config(const TrainOptions& options,
                        const DsConfig& config,
                        const Context& context);

/// The same from the file the options name.
Resolved resolve(const TrainOptions& options, const Context& context);

/// `accelerate launch` tells its scripts by environment variables how to train. dstrain reads its
/// own options alone: throws Error{config} that names each variable that asks for something else
/// than `settings`, and what to type for it. resolve() calls it where the ranks are known.
void check_accelerate_environment(const TrainSettings& settings, bool has_configuration);

/// What a configuration amounts to, as JSON: "effective" (nested as in a ds_config.json), "origin"
/// of each value by its path, and "warnings".
std::string report_json(const Resolved& resolved);

}  // namespace dstrain::config
