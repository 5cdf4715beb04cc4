#include "runtime/session/model_loading.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/checkpoint/catalog.h"
#include "runtime/checkpoint/checkpoint_weights.h"
#include "runtime/config/missing_directory.h"
#include "runtime/data/content_digest.h"
#include "runtime/data/shard_manifest.h"
#include "runtime/engine/run_model.h"
#include "runtime/model/families.h"
#include "runtime/model/float16_source.h"
#include "runtime/model/hf_import.h"
#include "runtime/model/hf_index.h"
#include "runtime/model/model_statements.h"
#include "runtime/model/other_formats.h"
#include "runtime/model/random_source.h"

namespace dstrain::session {
namespace {

namespace fs = std::filesystem;

/// One of the files must be there. A training run's output directory that lacks them may have
/// checkpoints, of which one can be given.
void require_any(const config::ModelSettings& settings,
                 std::initializer_list<std::string_view> files) {
  const fs::path directory = settings.directory;
  const std::string& option = settings.named_by;
  std::error_code ignored;
  const auto there = [&](std::string_view file) {
    return fs::exists(directory / file, ignored);
  };
  if (std::ranges::any_of(files, there)) return;
  if (!fs::is_directory(directory, ignored)) {
    fail(ErrorCode::input, "{} {}", option, config::missing_directory(directory.string(), option));
  }
  const std::vector<checkpoint::Found> found = checkpoint::list_checkpoints(directory);
  if (found.empty()) {
    const std::string other = model::explain_other_format(directory, option);
    if (!other.empty()) fail(ErrorCode::input, "{} {}", option, other);
    return;
  }
  const auto newest = engine::find_newest_checkpoint(directory, checkpoint::Depth::names);
  const fs::path model = newest ? engine::model_of_run(*newest) : found.front().path;
  fail(ErrorCode::input,
       "{} {}: holds no {}, but checkpoints; to start from the run's model so far, give {}", option,
       directory.string(), fmt::join(files, " or "), model.string());
}

std::unique_ptr<model::ModelConfig> stored_config(const config::ModelSettings& settings) {
  const std::string& directory = settings.directory;
  if (holds_token_shards(directory)) {
    fail(
        ErrorCode::input,
        "{} {}: holds the token shards of dstrain tokenize, not a model; give them as --train_file",
        settings.named_by, directory);
  }
  require_any(settings, {"config.json"});
  if (!checkpoint::has_manifest(directory)) return model::load_stored_config(directory);
  const std::string text = checkpoint::Checkpoint(directory).read_text("config.json");
  return model::parse_model_config(text, (fs::path(directory) / "config.json").string());
}

void apply_statements(model::ModelConfig& config, const config::ModelSettings& settings) {
  std::vector<model::ModelStatement> statements;
  for (const config::ModelStatement& said : settings.statements) {
    statements.push_back({said.option, said.typed_as, said.value});
  }
  model::apply_statements(
      config, statements,
      settings.directory.empty() ? model::WeightOrigin::random : model::WeightOrigin::stored);
}

template <class Weights>
StoredWeights with_dtype(std::unique_ptr<Weights> weights) {
  const DType dtype = weights->dtype();
  return {std::move(weights), dtype};
}

}  // namespace

bool holds_token_shards(const fs::path& directory) {
  try {
    return data::read_shard_manifest(directory).has_value();
  } catch (const Error&) {
    return false;  // a checkpoint's
  }
}

bool names_model(const config::ModelSettings& settings) {
  return !settings.directory.empty() || !settings.config.empty();
}

std::unique_ptr<model::ModelConfig> model_config(const config::ModelSettings& settings) {
  if (!names_model(settings)) {
    fail(ErrorCode::usage,
         "no model: give --model_name_or_path DIR, or --config_name gpt2 for random weights");
  }
  auto config =
      settings.config.empty() ? stored_config(settings) : model::load_model_config(settings.config);
  config->apply_overrides(settings.overrides);
  config->check();
  apply_statements(*config, settings);
  return config;
}

std::vector<model::CompanionFile> stored_companions(const std::string& directory) {
  if (!checkpoint::has_manifest(directory)) return model::read_companions(directory);
  return checkpoint::companions_of(checkpoint::Checkpoint(directory));
}

StoredWeights open_weights(const config::ModelSettings& settings, const model::Model& model) {
  const std::string& directory = settings.directory;
  const std::vector<model::ParameterSpec> parameters = model.parameters();
  if (checkpoint::has_manifest(directory)) {
    return with_dtype(std::make_unique<checkpoint::CheckpointWeights>(directory, parameters));
  }
  require_any(settings, {"model.safetensors", model::hf_index_file});
  return with_dtype(std::make_unique<model::HfWeights>(directory, parameters, model.hf_names));
}

std::unique_ptr<model::ParameterSource> open_parameters(const config::ModelSettings& settings,
                                                        const model::Model& model,
                                                        std::uint64_t seed) {
  if (settings.directory.empty()) {
    return std::make_unique<model::RandomSource>(seed, model.parameters());
  }
  std::unique_ptr<model::ParameterSource> stored = open_weights(settings, model).parameters;
  if (model.dtype != DType::f16) return stored;
  return std::make_unique<model::Float16Source>(std::move(stored));
}

std::string weights_digest(const model::ParameterSource& weights, const model::Model& model) {
  constexpr std::int64_t values_most = std::int64_t{1} << 28;
  constexpr std::int64_t block = std::int64_t{1} << 14;
  const std::int64_t stride = model.parameter_count() / values_most + 1;
  std::vector<Checksum> checksums;
  std::vector<float> values;
  for (const model::ParameterSpec& spec : model.parameters()) {
    for (std::int64_t at = 0; at < spec.shape.numel(); at += stride * block) {
      values.resize(static_cast<std::size_t>(std::min(block, spec.shape.numel() - at)));
      weights.read(spec, at, values);
      checksums.push_back(checksum_of(std::as_bytes(std::span(values))));
    }
  }
  return data::digest_text(data::combined(checksums));
}

}  // namespace dstrain::session
