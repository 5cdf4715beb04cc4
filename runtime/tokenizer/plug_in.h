#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/tokenizer/bpe_trainer.h"
#include "runtime/tokenizer/codec.h"

namespace dstrain::tokenizer {

/// What the files of a directory describe, with the tokens that they say begin and end texts.
struct LoadedCodec {
  std::unique_ptr<const Codec> codec;
  std::optional<std::int32_t> bos;
  std::optional<std::int32_t> eos;
};

/// What the plug-in offers: all that needs SentencePiece, ICU or PCRE2. It and the program are
/// built together.
struct PlugInFunctions {
  /// Throws Error{input} naming the file, the place and what is wrong or not supported.
  LoadedCodec (*load)(const std::string& directory);
  std::unique_ptr<BpeTrainer> (*make_bpe_trainer)();
};

/// The symbol of the plug-in's `const PlugInFunctions`.
inline constexpr const char* plug_in_functions_symbol = "dstrain_tokenizers_1";

/// Opens the plug-in libdstrain_tokenizers.so when it is first asked for: the libraries behind it
/// would make every program start a third slower. Throws Error{config} where it, or one of these
/// libraries, is missing.
const PlugInFunctions& plug_in_functions();

}  // namespace dstrain::tokenizer
