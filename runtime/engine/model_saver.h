#pragma once
#include <exception>
#include <filesystem>

#include "runtime/engine/parameter_store.h"
#include "runtime/model/model.h"

namespace dstrain::engine {

/// Writes the model in Hugging Face layout (config.json, model.safetensors, in the model's dtype,
/// and its companions) to `directory`, unit by unit, so that no rank holds more than the store's
/// largest unit; where that is null the rank only helps to gather. Collective. Returns what the
/// writing of the files threw on a rank that writes, null if they are whole: the ranks are together
/// then. A value that is not finite is Error{diverged}, and what was in `directory` stays. Throws
/// what the store does.
[[nodiscard]] std::exception_ptr save_model(const model::Model& model,
                                            ParameterStore& store,
                                            const std::filesystem::path* directory,
                                            StreamView stream);

}  // namespace dstrain::engine
