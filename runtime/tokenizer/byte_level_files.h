#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/merge_table.h"

namespace dstrain::tokenizer {

/// The special token of GPT-2, which ends texts; id 0 in these files.
inline constexpr std::string_view end_of_text = "<|endoftext|>";

/// tokenizer.json of a byte-level BPE that cuts texts as GPT-2 does, laid out as Hugging Face's
/// `tokenizers` saves it.
/// @p tokens by id, in the alphabet of bytes (byte_level.h); the first is end_of_text
/// @p merges in their order
std::string byte_level_tokenizer_json(const std::vector<std::string>& tokens,
                                      const std::vector<Merge>& merges);

/// tokenizer_config.json for `transformers`: the class that takes tokenizer.json as it is, and
/// end_of_text as the token that begins and ends texts.
std::string byte_level_config_json();

}  // namespace dstrain::tokenizer
