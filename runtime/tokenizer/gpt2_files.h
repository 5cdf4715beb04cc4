#pragma once
#include <filesystem>
#include <memory>

#include "runtime/tokenizer/codec.h"
#include "runtime/tokenizer/special_names.h"

namespace dstrain::tokenizer {

/// Loads GPT-2's tokenizer from vocab.json (tokens and ids) and merges.txt (a line "#version", then
/// one merge per line): byte-level BPE with GPT-2's regular expression. Texts are searched for the
/// special tokens of `names`, or <|endoftext|> without names, as far as the vocabulary has them.
/// Throws Error{input}.
std::unique_ptr<Codec> load_gpt2_files(const std::filesystem::path& directory,
                                       const SpecialNames& names);

}  // namespace dstrain::tokenizer
