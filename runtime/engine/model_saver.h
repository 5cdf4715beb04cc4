#pragma once
#include <exception>
#include <filesystem>

#include "runtime/engine/parameter_store.h"
#include "runtime/model/model.h"

namespace dstrain::engine {

/// Writes the model to `directory` in Hugging Face layout (config.json, model.safetensors in the
/// model's dtype, and its companions), unit by unit, so that no rank holds more than the store's
/// largest unit. If `directory` is null, the rank only takes part in the gathers. Collective.
/// Returns the failure of writing the files, or null if they are whole; the ranks are in step then.
/// A value that is not finite is Error{diverged}, and earlier files in `directory` stay. Throws
/// failures of the store.
[[nodiscard]] std::exception_ptr save_model(const model::Model& model,
                                            ParameterStore& store,
                                            const std::filesystem::path* directory,
                                            StreamView stream);

}  // namespace dstrain::engine
