#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/tokenizer/bpe_trainer.h"
#include "runtime/tokenizer/codec.h"

namespace dstrain::tokenizer {

/// The codec for the files of a directory, and the tokens that begin and end texts.
struct LoadedCodec {
  std::unique_ptr<const Codec> codec;
  std::optional<std::int32_t> bos;
  std::optional<std::int32_t> eos;
};

/// The interface of the plug-in: everything that needs SentencePiece, ICU or PCRE2. Plug-in and
/// program are built together.
struct PlugInFunctions {
  /// Throws Error{input} that names the file, the place and what is wrong or unsupported.
  LoadedCodec (*load)(const std::string& directory);
  std::unique_ptr<BpeTrainer> (*make_bpe_trainer)();
};

/// The symbol of the plug-in's `const PlugInFunctions`.
inline constexpr const char* plug_in_functions_symbol = "dstrain_tokenizers_1";

/// Opens the plug-in libdstrain_tokenizers.so at its first use, because its libraries would make
/// every program start a third slower. Throws Error{config} if it or one of them is missing.
const PlugInFunctions& plug_in_functions();

}  // namespace dstrain::tokenizer
