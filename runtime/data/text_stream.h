#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/text_encoder.h"

namespace dstrain::data {

/// Decodes tokens that come one by one. Its pieces together are what the encoder makes of all
/// tokens at once. It decodes only the last few tokens again, unless the encoder cannot tell what
/// later tokens change: then all text is in the last piece. Not thread-safe.
class TextStream {
 public:
  /// `encoder` must outlive the stream.
  explicit TextStream(const TextEncoder& encoder) : encoder_(&encoder) {}

  /// Adds a token, and returns the text that is final with it: whole characters, often none. For
  /// example, a tokenizer with byte fallback decodes a run of bytes as a whole, so their text comes
  /// with the token behind them.
  std::string add(std::int32_t token);

  /// The text of the tokens so far that is in no piece yet, as it is if no token follows.
  [[nodiscard]] std::string_view pending() const { return std::string_view(text_).substr(given_); }

  /// Returns the last piece, `pending`. Afterwards the stream is as new.
  std::string finish();

 private:
  void forget_context();

  const TextEncoder* encoder_;
  /// The last tokens. The first `context_` of them are in pieces already, and have text: so what
  /// follows is decoded as it is behind all tokens.
  std::vector<std::int32_t> tokens_;
  std::size_t context_ = 0;
  std::string text_;       ///< of tokens_
  std::size_t given_ = 0;  ///< bytes of text_ that are in pieces
};

/// Finds strings that end a text which grows by pieces. Not thread-safe.
class StopStrings {
 public:
  /// None of the strings may be empty.
  explicit StopStrings(std::vector<std::string> strings);

  /// Whether one of the strings ends in `piece` or in `pending`, which follows it; it may begin in
  /// earlier pieces. `pending` may change, so the next call has it again. With the pieces of a
  /// TextStream, that is whether the token just added completes one of the strings.
  bool complete(std::string_view piece, std::string_view pending = {});

 private:
  std::vector<std::string> strings_;
  std::size_t longest_ = 0;
  std::string tail_;  ///< of the pieces: as much as a string may begin in
};

}  // namespace dstrain::data
