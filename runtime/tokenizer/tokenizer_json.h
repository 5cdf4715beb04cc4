#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "runtime/tokenizer/codec.h"

namespace dstrain::tokenizer {

/// What a tokenizer.json of Hugging Face's `tokenizers` describes. Its truncation and padding are
/// left out: they are about batches. `file` is for messages. Throws Error{input}.
std::unique_ptr<Codec> parse_tokenizer_json(std::string_view text, const std::string& file);

}  // namespace dstrain::tokenizer
