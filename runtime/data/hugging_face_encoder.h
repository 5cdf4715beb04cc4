#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/data/chat_template.h"
#include "runtime/data/text_encoder.h"
#include "runtime/tokenizer/tokenizer.h"

namespace dstrain::data {

/// The tokenizer of a Hugging Face directory, and its chat template if there is one.
class HuggingFaceEncoder : public TextEncoder {
 public:
  /// Throws Error{input} naming the file and what is wrong or not supported.
  explicit HuggingFaceEncoder(const std::string& directory, const ChatOptions& options = {});

  /// See tokenizer_identity; with the date of the options, if they have one.
  [[nodiscard]] std::string identity() const override { return identity_; }
  [[nodiscard]] std::int64_t vocabulary() const override { return tokenizer_.vocabulary_size(); }
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const override {
    return tokenizer_.encode(text);
  }
  [[nodiscard]] std::size_t safe_cut(std::string_view text) const override {
    return tokenizer_.safe_cut(text);
  }
  [[nodiscard]] std::vector<std::int32_t> encode_following(std::string_view text) const override {
    return tokenizer_.encode_following(text);
  }
  [[nodiscard]] std::string decode(std::span<const std::int32_t> ids) const override {
    return tokenizer_.decode(ids, tokenizer::SpecialText::skipped);
  }
  [[nodiscard]] tokenizer::DecodedPrefix decode_prefix(
      std::span<const std::int32_t> ids) const override {
    return tokenizer_.decode_prefix(ids, tokenizer::SpecialText::skipped);
  }
  [[nodiscard]] std::int64_t text_bytes(std::int32_t id) const override {
    return tokenizer_.text_bytes(id);
  }
  [[nodiscard]] std::vector<std::int32_t> beginning() const override { return around().before; }
  [[nodiscard]] std::vector<std::int32_t> ending() const override { return around().behind; }
  [[nodiscard]] std::optional<std::int32_t> begin_of_text() const override {
    return tokenizer_.bos();
  }
  [[nodiscard]] std::optional<std::int32_t> end_of_text() const override {
    return tokenizer_.eos();
  }
  [[nodiscard]] std::optional<ByteRange> first_special(std::string_view text) const override;
  [[nodiscard]] const ChatTemplate* chat_template() const override {
    return chat_template_.ok() ? &chat_template_.value() : nullptr;
  }
  [[nodiscard]] std::string no_chat_template() const override { return chat_template_.error(); }

 private:
  struct Around {
    std::vector<std::int32_t> before;
    std::vector<std::int32_t> behind;
  };
  /// The tokens that the tokenizer puts around any text.
  [[nodiscard]] Around around() const;

  tokenizer::Tokenizer tokenizer_;
  std::string identity_;
  Result<ChatTemplate> chat_template_;
};

/// Returns the SHA-256 of the files in a directory that determine how texts and messages become
/// tokens.
std::string tokenizer_identity(const std::string& directory);

/// Whether a directory holds a tokenizer's files.
bool has_tokenizer(const std::string& directory);

}  // namespace dstrain::data
