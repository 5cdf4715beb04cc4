#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tokenizer/codec.h"

namespace dstrain::data {

class ChatTemplate;

struct ChatOptions {
  /// What `strftime_now` of templates tells; none: such a template is refused, because every day
  /// would give other tokens.
  std::optional<std::chrono::year_month_day> date{};
};

/// Bytes [begin, end) of a text.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const ByteRange&) const = default;
};

/// Encodes text as tokens, with any tokenizer. Immutable, so threads may share one.
class TextEncoder {
 public:
  TextEncoder() = default;
  TextEncoder(const TextEncoder&) = delete;
  TextEncoder& operator=(const TextEncoder&) = delete;
  virtual ~TextEncoder() = default;

  /// The key of cached tokens: two encoders with the same identity make the same tokens and the
  /// same texts of messages. For a tokenizer from files, their digest.
  [[nodiscard]] virtual std::string identity() const = 0;
  /// Returns the limit of ids, exclusive.
  [[nodiscard]] virtual std::int64_t vocabulary() const = 0;
  /// Whether each byte of a text is its token, so that such text is read from its file directly.
  [[nodiscard]] virtual bool is_bytes() const { return false; }
  /// Returns the tokens of UTF-8 text, with names of special tokens in it as these tokens, and no
  /// others added.
  [[nodiscard]] virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  /// Returns how much of a text that continues after `text` can be encoded separately: the tokens
  /// of text[0, n), as a first or following piece, and those of the rest as a following piece are
  /// those of the whole. 0: more of the text is needed.
  [[nodiscard]] virtual std::size_t safe_cut(std::string_view text) const = 0;
  /// Returns the tokens of a piece that begins at such a cut.
  [[nodiscard]] virtual std::vector<std::int32_t> encode_following(std::string_view text) const = 0;
  /// Returns the text of tokens, without the special ones.
  [[nodiscard]] virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  /// The same of tokens that others may follow, and how much of it these cannot change; see
  /// Tokenizer::decode_prefix. Unless overridden, all of it may change.
  [[nodiscard]] virtual tokenizer::DecodedPrefix decode_prefix(
      std::span<const std::int32_t> ids) const {
    return {.text = decode(ids), .settled = 0};
  }
  /// Returns how many bytes of UTF-8 text a token stands for inside a text. A part of a character
  /// counts its own bytes; special and absent tokens count none.
  [[nodiscard]] virtual std::int64_t text_bytes(std::int32_t id) const = 0;
  /// The tokens that the tokenizer itself puts before a text, such as Llama's `<s>`; usually none.
  [[nodiscard]] virtual std::vector<std::int32_t> beginning() const { return {}; }
  /// The tokens that it puts after a text, such as T5's `</s>`.
  [[nodiscard]] virtual std::vector<std::int32_t> ending() const { return {}; }
  /// The token that the tokenizer's files name as the beginning of a text, whether it is added or
  /// not.
  [[nodiscard]] virtual std::optional<std::int32_t> begin_of_text() const { return std::nullopt; }
  /// The token that ends a document.
  [[nodiscard]] virtual std::optional<std::int32_t> end_of_text() const { return std::nullopt; }
  /// Returns the place of the first special token that is written in a text; none: it has none.
  [[nodiscard]] virtual std::optional<ByteRange> first_special(std::string_view /*text*/) const {
    return std::nullopt;
  }
  /// The template for messages; null: unknown, and `no_chat_template` says why.
  [[nodiscard]] virtual const ChatTemplate* chat_template() const { return nullptr; }
  [[nodiscard]] virtual std::string no_chat_template() const { return "there is no chat template"; }
};

/// Returns the beginning of `text` that can be encoded separately: about a mebibyte, more if the
/// text cannot be cut earlier, or all of it.
std::string_view first_piece(const TextEncoder& encoder, std::string_view text);

/// Makes the encoder for `--tokenizer`: `byte`, or a directory with a Hugging Face tokenizer.
/// Throws Error{input} naming the file.
std::unique_ptr<TextEncoder> make_encoder(const std::string& tokenizer,
                                          const ChatOptions& options = {});

/// Makes an encoder of bytes, which have no chat template; `no_chat_template` says so.
std::unique_ptr<TextEncoder> make_byte_encoder(std::string no_chat_template);

}  // namespace dstrain::data
