#pragma once
#include <filesystem>
#include <memory>

#include "runtime/tokenizer/codec.h"
#include "runtime/tokenizer/special_names.h"

namespace dstrain::tokenizer {

/// SentencePiece's own library over its file of a model. Control symbols that are written in a text
/// are text to it. Throws Error{input}.
std::unique_ptr<Codec> load_sentencepiece(const std::filesystem::path& path,
                                          const SpecialNames& names);

}  // namespace dstrain::tokenizer
