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

/// Converts text to tokens and back with the files of a Hugging Face model directory:
/// tokenizer.json, else GPT-2's vocab.json and merges.txt, else SentencePiece's tokenizer.model.
/// The tokens equal those of the Python libraries `tokenizers` and `sentencepiece`;
/// docs/tokenizers.md says what is supported, what is refused, and where versions of Unicode
/// differ. Immutable: threads may share one.
class Tokenizer {
 public:
  /// Throws Error{input} that names the file, the place and what is wrong or unsupported, and
  /// Error{config} if the plug-in libdstrain_tokenizers.so or one of its libraries is missing.
  static Tokenizer load(const std::string& directory);

  /// Returns the tokens of a text of at most 1 GiB, including special tokens written in it. Invalid
  /// UTF-8 counts as U+FFFD, as in Python's bytes.decode(errors="replace"). Uses about ten times
  /// the text's size in memory; encode longer ones in pieces, see safe_cut.
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text,
                                                 SpecialTokens special = SpecialTokens::none) const;
  /// Appends them.
  void encode(std::string_view text, SpecialTokens special, std::vector<std::int32_t>& ids) const;

  /// Returns how much of a text that continues after `text` can be encoded separately: the largest
  /// n < text.size() such that the tokens of text[0, n), as a first or a following piece, and those
  /// of the rest as a following piece equal those of the whole, whatever follows. 0: no such place
  /// is known, as always with tokenizer.model. Searches `text` backwards from its end.
  [[nodiscard]] std::size_t safe_cut(std::string_view text) const;
  /// Returns the tokens of a piece of at most 1 GiB that begins at such a place.
  [[nodiscard]] std::vector<std::int32_t> encode_following(std::string_view text) const;

  /// Returns the text of tokens as UTF-8. Skips ids without a token.
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids,
                                   SpecialText special = SpecialText::kept) const;
  /// The same of tokens that others may follow, and how much of it these cannot change. If all of a
  /// text that is not empty is settled, the text of the following tokens does not depend on what is
  /// before `ids`.
  [[nodiscard]] DecodedPrefix decode_prefix(std::span<const std::int32_t> ids,
                                            SpecialText special = SpecialText::kept) const;

  /// Returns how many bytes of UTF-8 text a token stands for inside a text. A part of a character
  /// counts its own bytes; special and absent tokens count none.
  [[nodiscard]] std::int64_t text_bytes(std::int32_t id) const { return codec_->text_bytes(id); }

  /// Returns the largest id plus one.
  [[nodiscard]] std::int64_t vocabulary_size() const { return codec_->vocabulary_size(); }
  [[nodiscard]] std::optional<std::string> token(std::int32_t id) const {
    return codec_->token(id);
  }
  [[nodiscard]] std::optional<std::int32_t> id(std::string_view token) const {
    return codec_->id(token);
  }
  /// The tokens that begin and end texts, if tokenizer_config.json or special_tokens_map.json names
  /// them.
  [[nodiscard]] std::optional<std::int32_t> bos() const { return bos_; }
  [[nodiscard]] std::optional<std::int32_t> eos() const { return eos_; }

 private:
  explicit Tokenizer(std::unique_ptr<const Codec> codec) : codec_(std::move(codec)) {}

  std::unique_ptr<const Codec> codec_;
  std::optional<std::int32_t> bos_;
  std::optional<std::int32_t> eos_;
};

}  // namespace dstrain::tokenizer
