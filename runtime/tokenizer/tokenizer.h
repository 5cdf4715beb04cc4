#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/codec.h"

namespace dstrain::tokenizer {

/// Text to tokens and back, as the files of a Hugging Face model directory have it: tokenizer.json,
/// or else vocab.json and merges.txt of GPT-2, or else SentencePiece's tokenizer.model. Tokens
/// equal those of the Python libraries `tokenizers` and `sentencepiece`; docs/tokenizers.md says
/// what is read, what is refused, and where versions of Unicode differ. Immutable: threads may
/// share one.
class Tokenizer {
 public:
  /// Throws Error{input} naming the file, the place and what is wrong or not supported, and
  /// Error{config} where the plug-in libdstrain_tokenizers.so, or a library of its, is missing.
  static Tokenizer load(const std::string& directory);

  /// The tokens of a text of at most 1 GiB, special tokens that are written in it included. What is
  /// no UTF-8 counts as U+FFFD, as with Python's bytes.decode(errors="replace"). Takes about ten
  /// times the text in memory: longer ones are encoded in pieces, see safe_cut.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text,
                                                 SpecialTokens special = SpecialTokens::none) const;
  /// Appends them.
  void encode(std::string_view text, SpecialTokens special, std::vector<std::int32_t>& ids) const;

  /// How much of a text that goes on after `text` can be encoded by itself: the most bytes n, less
  /// than all, such that the tokens of text[0, n), as a first or a following piece, and those of
  /// the rest as a following piece are those of the whole, whatever follows. 0: there is no such
  /// place in `text`, or none can be told, as with tokenizer.model. Looks at `text` from its end
  /// back to that place.
  [[nodiscard]] std::size_t safe_cut(std::string_view text) const;
  /// The tokens of a piece of at most 1 GiB that begins at such a place.
  [[nodiscard]] std::vector<std::int32_t> encode_following(std::string_view text) const;

  /// The text of tokens, as UTF-8. Ids without a token are left out.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids,
                                   SpecialText special = SpecialText::kept) const;

  /// The largest id, plus one.
  [[nodiscard]] std::int64_t vocabulary_size() const { return codec_->vocabulary_size(); }
  [[nodiscard]] std::optional<std::string> token(std::int32_t id) const {
    return codec_->token(id);
  }
  [[nodiscard]] std::optional<std::int32_t> id(std::string_view token) const {
    return codec_->id(token);
  }
  /// The tokens that begin and end texts, as far as tokenizer_config.json or
  /// special_tokens_map.json name them.
  [[nodiscard]] std::optional<std::int32_t> bos() const { return bos_; }
  [[nodiscard]] std::optional<std::int32_t> eos() const { return eos_; }

 private:
  explicit Tokenizer(std::unique_ptr<const Codec> codec) : codec_(std::move(codec)) {}

  std::unique_ptr<const Codec> codec_;
  std::optional<std::int32_t> bos_;
  std::optional<std::int32_t> eos_;
};

}  // namespace dstrain::tokenizer
