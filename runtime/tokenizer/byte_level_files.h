#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/merge_table.h"

namespace dstrain::tokenizer {

/// GPT-2's special token, which ends a text. Its id in these files is 0.
inline constexpr std::string_view end_of_text = "<|endoftext|>";

/// Returns the tokenizer.json of a byte-level BPE that cuts texts like GPT-2, formatted like
/// Hugging Face's `tokenizers`.
/// @p tokens by id, in the alphabet of bytes (byte_level.h); the first is end_of_text
/// @p merges in order of rank
std::string byte_level_tokenizer_json(const std::vector<std::string>& tokens,
                                      const std::vector<Merge>& merges);

/// Returns a tokenizer_config.json for `transformers`: a class that uses tokenizer.json unchanged,
/// and end_of_text as the token that begins and ends texts.
std::string byte_level_config_json();

}  // namespace dstrain::tokenizer
