#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace dstrain::model {

/// What a directory is that holds no model in safetensors and no checkpoint of dstrain, and what to
/// do about it: a checkpoint of DeepSpeed or of Hugging Face's Trainer, or a model in pickled
/// files, none of which is ever read, as a pickle can run code. Empty when it is none of these.
/// `option` takes the model that can be made of it.
std::string explain_other_format(const std::filesystem::path& directory,
                                 std::string_view option = "--model_name_or_path");

/// What to know of a directory with weights that are read, and an adapter of PEFT beside them that
/// is not; empty: there is none. `directory` may be empty, for a model without one.
std::string explain_idle_adapter(const std::filesystem::path& directory);

}  // namespace dstrain::model
