#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "runtime/tokenizer/codec.h"

namespace dstrain::tokenizer {

/// Builds the codec that a tokenizer.json of Hugging Face's `tokenizers` describes. Ignores
/// truncation and padding, which concern batches. `file` is for messages. Throws Error{input}.
std::unique_ptr<Codec> parse_tokenizer_json(std::string_view text, const std::string& file);

}  // namespace dstrain::tokenizer
