#pragma once
#include <filesystem>

#include "runtime/tokenizer/plug_in.h"
#include "runtime/tokenizer/special_names.h"

namespace dstrain::tokenizer {

/// Uses SentencePiece's own library with its model file. Control symbols in a text are plain text.
/// The file determines which tokens begin and end texts. Throws Error{input}.
LoadedCodec load_sentencepiece(const std::filesystem::path& path, const SpecialNames& names);

}  // namespace dstrain::tokenizer
