#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::data {

class ChatTemplate;

/// Makes tokens of text, by whatever tokenizer. Immutable, so threads may share one.
class TextEncoder {
 public:
  TextEncoder() = default;
  TextEncoder(const TextEncoder&) = delete;
  TextEncoder& operator=(const TextEncoder&) = delete;
  virtual ~TextEncoder() = default;

  /// What cached tokens are known by: two encoders of one identity make the same tokens and the
  /// same texts of messages. Of a tokenizer from files, their digest.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// Ids are below it.
  [[nodiscard]] virtual std::int64_t vocabulary() const = 0;
  /// Whether each byte of a text is its token: such text is read from its file as it is.
  [[nodiscard]] virtual bool is_bytes() const { return false; }
  /// The tokens of UTF-8 text, with names of special tokens in it as these tokens, and nothing
  /// added.
  [[nodiscard]] virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// How much of a text that goes on after `text` can be encoded by itself: the tokens of
  /// text[0, n), as a first or following piece, and those of the rest as a following piece are
  /// those of the whole. 0: more of the text must be seen.
  [[nodiscard]] virtual std::size_t safe_cut(std::string_view text) const = 0;
  /// Tokens of a piece that begins at such a cut.
  [[nodiscard]] virtual std::vector<std::int32_t> encode_following(std::string_view text) const = 0;
  /// The text of tokens, without the special ones.
  [[nodiscard]] virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  /// What the tokenizer itself puts before a text, Llama's `<s>`; most put nothing.
  [[nodiscard]] virtual std::vector<std::int32_t> beginning() const { return {}; }
  /// And behind a text, T5's `</s>`.
  [[nodiscard]] virtual std::vector<std::int32_t> ending() const { return {}; }
  /// What the tokenizer's files name as the beginning of a text, whether it is put there or not.
  [[nodiscard]] virtual std::optional<std::int32_t> begin_of_text() const { return std::nullopt; }
  /// What ends a document.
  [[nodiscard]] virtual std::optional<std::int32_t> end_of_text() const { return std::nullopt; }
  /// How messages become text; null: not known, and then `no_chat_template` says why.
  [[nodiscard]] virtual const ChatTemplate* chat_template() const { return nullptr; }
  [[nodiscard]] virtual std::string no_chat_template() const { return "there is no chat template"; }
};

/// The beginning of `text` to encode by itself: about a mebibyte, more where the text cannot be cut
/// earlier, or all of it.
std::string_view first_piece(const TextEncoder& encoder, std::string_view text);

/// What `--tokenizer` names: `byte`, or a directory with a Hugging Face tokenizer. Throws
/// Error{input} naming the file.
std::unique_ptr<TextEncoder> make_encoder(const std::string& tokenizer);

/// Bytes, which have no chat template, with what is said of that.
std::unique_ptr<TextEncoder> make_byte_encoder(std::string no_chat_template);

}  // namespace dstrain::data
