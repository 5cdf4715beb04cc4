#pragma once
#include <filesystem>

#include "runtime/comm/communicator.h"
#include "runtime/engine/parameter_store.h"
#include "runtime/model/model.h"

namespace dstrain::engine {

/// Writes the model in Hugging Face layout (config.json, model.safetensors, in the model's dtype)
/// to `directory`: rank 0 writes unit by unit, so that no rank holds more than the store's largest
/// unit. Collective.
void save_model(const model::Model& model,
                ParameterStore& store,
                comm::Communicator& communicator,
                const std::filesystem::path& directory,
                Streams streams);

}  // namespace dstrain::engine
