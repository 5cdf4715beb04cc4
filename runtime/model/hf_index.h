#pragma once
#include <map>
#include <string>
#include <string_view>

#include "runtime/base/units.h"

namespace dstrain::model {

inline constexpr std::string_view hf_index_file = "model.safetensors.index.json";

/// Maps the name of a tensor to the file that holds it, a name without a directory.
using ShardMap = std::map<std::string, std::string>;

/// Parses an index (`path` is for messages). Throws Error{input} naming an entry that is not a
/// plain name of a file beside the index.
ShardMap parse_hf_index(std::string_view text, const std::string& path);

/// Returns the text of an index. `data_bytes`: of all tensors.
std::string hf_index_text(const ShardMap& shard_of, Bytes data_bytes);

/// Returns "model-00001-of-00003.safetensors" for the first (0) of 3; `digits` is Hugging Face's 5
/// or more.
std::string hf_shard_name(std::size_t shard, std::size_t shards, int digits = 5);

/// Whether the name has this form.
bool is_hf_shard_name(std::string_view name);

}  // namespace dstrain::model
