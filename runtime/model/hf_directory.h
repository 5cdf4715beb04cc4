#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/safetensors/file.h"

namespace dstrain::model {

/// Opens the weight files of a Hugging Face model directory: `model.safetensors`, or the shards in
/// `model.safetensors.index.json`, each checked against the index. Shards are plain file names in
/// the directory; symbolic links are followed. Pickle (`pytorch_model.bin`) is never read. Throws
/// Error{input} naming the file, and a remedy if there is one.
std::vector<safetensors::File> open_hf_directory(const std::string& directory);

/// Whether a weight file of such a directory holds a tensor of that name. Throws Error{input} in
/// the same way.
bool stores_tensor(const std::string& directory, std::string_view name);

}  // namespace dstrain::model
