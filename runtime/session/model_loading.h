#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/config/train_settings.h"
#include "runtime/model/hf_companions.h"
#include "runtime/model/model_config.h"
#include "runtime/model/parameter_source.h"
#include "runtime/tensor/dtype.h"

namespace dstrain::session {

// A model directory is Hugging Face's or, when it holds a manifest.json, a checkpoint of dstrain:
// then all that is read is checked against its checksums, and the optimizer's states are left.

/// Whether a directory holds the token shards of `dstrain tokenize`, which have a manifest too.
bool holds_token_shards(const std::filesystem::path& directory);

/// Whether the options name a model.
bool names_model(const config::ModelSettings& settings);

/// The model that --model_name_or_path, --config_name and --config_overrides ask for. Throws
/// Error{usage} or Error{input}.
std::unique_ptr<model::ModelConfig> model_config(const config::ModelSettings& settings);

/// What goes wherever the model of --model_name_or_path goes. Throws Error{input}.
std::vector<model::CompanionFile> stored_companions(const std::string& directory);

struct StoredWeights {
  std::unique_ptr<model::ParameterSource> parameters;
  DType dtype = DType::f32;  ///< bf16 or f16 when all are stored so: it loses nothing
};

/// Opens the weights of --model_name_or_path. Throws Error{input} when they are not exactly the
/// parameters of `model`; where the directory holds checkpoints instead, the message names the
/// one that is the run's model.
StoredWeights open_weights(const config::ModelSettings& settings, const model::Model& model);

/// The values with which training begins: those of the model's directory, or drawn from `seed`.
std::unique_ptr<model::ParameterSource> open_parameters(const config::ModelSettings& settings,
                                                        const model::Model& model,
                                                        std::uint64_t seed);

/// A digest of all values of a model of up to some 270 million parameters, and of as many blocks of
/// a larger one, evenly apart: what differs in a few rows alone may lie between these.
std::string weights_digest(const model::ParameterSource& weights, const model::Model& model);

}  // namespace dstrain::session
