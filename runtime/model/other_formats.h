#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace dstrain::model {

/// Explains a directory that holds neither a model in safetensors nor a checkpoint of dstrain, with
/// a remedy: a checkpoint of DeepSpeed or of Hugging Face's Trainer, or a model in pickle files.
/// These are never read, because a pickle can run code. Empty for other directories. `option` takes
/// the model that can be made from it.
std::string explain_other_format(const std::filesystem::path& directory,
                                 std::string_view option = "--model_name_or_path");

/// Warns that a PEFT adapter beside the weights in a directory is not read; empty if there is none.
/// `directory` may be empty, for a model without one.
std::string explain_idle_adapter(const std::filesystem::path& directory);

}  // namespace dstrain::model
