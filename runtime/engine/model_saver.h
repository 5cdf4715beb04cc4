#pragma once
#include <filesystem>

#include "runtime/engine/parameter_store.h"
#include "runtime/model/model.h"

namespace dstrain::engine {

/// Writes the model in Hugging Face layout (config.json, model.safetensors, in the model's dtype)
/// to `directory`, unit by unit, so that no rank holds more than the store's largest unit; where
/// that is null the rank only helps to gather. Collective; what fails on a rank that writes is
/// thrown there, when all units are through.
void save_model(const model::Model& model,
                ParameterStore& store,
                const std::filesystem::path* directory,
                StreamView stream);

}  // namespace dstrain::engine
