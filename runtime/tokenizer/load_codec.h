#pragma once
#include <string>

#include "runtime/tokenizer/plug_in.h"

namespace dstrain::tokenizer {

/// Reads tokenizer.json, or else vocab.json and merges.txt, or else tokenizer.model, and what goes
/// with them. Throws Error{input} naming the file, the place and what is wrong or not supported.
LoadedCodec load_codec(const std::string& directory);

}  // namespace dstrain::tokenizer
