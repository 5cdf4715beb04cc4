#pragma once
#include <string>

#include "runtime/tokenizer/plug_in.h"

namespace dstrain::tokenizer {

/// Loads tokenizer.json, else vocab.json and merges.txt, else tokenizer.model, with their companion
/// files. Throws Error{input} that names the file, the place and what is wrong or unsupported.
LoadedCodec load_codec(const std::string& directory);

}  // namespace dstrain::tokenizer
