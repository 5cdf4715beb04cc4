#pragma once
#include <filesystem>

#include "runtime/tokenizer/plug_in.h"
#include "runtime/tokenizer/special_names.h"

namespace dstrain::tokenizer {

/// SentencePiece's own library over its file of a model. Control symbols that are written in a text
/// are text to it. What begins and ends texts is what the file says. Throws Error{input}.
LoadedCodec load_sentencepiece(const std::filesystem::path& path, const SpecialNames& names);

}  // namespace dstrain::tokenizer
