#include "runtime/data/text_stream.h"

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/base/error.h"

namespace dstrain::data {

std::string TextStream::add(std::int32_t token) {
  tokens_.push_back(token);
  tokenizer::DecodedPrefix decoded = encoder_->decode_prefix(tokens_);
  text_ = std::move(decoded.text);
  const std::size_t settled = std::max(decoded.settled, given_);
  std::string piece = text_.substr(given_, settled - given_);
  given_ = settled;
  if (given_ == text_.size()) forget_context();
  return piece;
}

std::string TextStream::finish() {
  std::string piece(pending());
  *this = TextStream(*encoder_);
  return piece;
}

/// All text is settled here. What is behind the context becomes the next one if it has text, as
/// the encoder asks for.
void TextStream::forget_context() {
  std::string text = encoder_->decode(std::span(tokens_).subspan(context_));
  if (text.empty()) return;
  tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(context_));
  context_ = tokens_.size();
  given_ = text.size();
  text_ = std::move(text);
}

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  for (const std::string& each : strings_) {
    DSTRAIN_CHECK(!each.empty(), "an empty string would end every text");
    longest_ = std::max(longest_, each.size());
  }
}

bool StopStrings::complete(std::string_view piece, std::string_view pending) {
  const std::size_t before = tail_.size();
  std::string text = std::move(tail_);
  text.append(piece).append(pending);
  const bool found = std::ranges::any_of(strings_, [&](const std::string& each) {
    const std::size_t from = before + 1 > each.size() ? before + 1 - each.size() : 0;
    return text.find(each, from) != std::string::npos;
  });
  text.resize(before + piece.size());
  if (text.size() >= longest_ && longest_ > 0) text.erase(0, text.size() - (longest_ - 1));
  tail_ = std::move(text);
  return found;
}

}  // namespace dstrain::data
