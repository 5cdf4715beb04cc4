#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/safetensors/file.h"

namespace dstrain::model {

/// Opens the weight files of a Hugging Face model directory: `model.safetensors`, or the shards
/// that `model.safetensors.index.json` names, each checked to hold what the index says. Shards are
/// plain file names in the directory; symbolic links are followed. Pickle (`pytorch_model.bin`) is
/// never read. Throws Error{input} naming the file, and the remedy where there is one.
std::vector<safetensors::File> open_hf_directory(const std::string& directory);

/// Whether a weight file of such a directory holds a tensor of the name. Throws Error{input}
/// likewise.
bool stores_tensor(const std::string& directory, std::string_view name);

}  // namespace dstrain::model
