#include "runtime/tokenizer/tokenizer.h"

#include <unordered_map>

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/tokenizer/plug_in.h"

namespace dstrain::tokenizer {
namespace {

constexpr std::size_t text_bytes_max = std::size_t{1} << 30;
constexpr char32_t replacement = 0xFFFD;

void check_size(std::string_view text) {
  if (text.size() <= text_bytes_max) return;
  fail(ErrorCode::input, "a text of {} bytes is too large to encode at once: at most {}",
       text.size(), text_bytes_max);
}

bool continues_character(std::string_view text, std::size_t at) {
  return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80;
}

/// Returns the character that ends at `end`, a character boundary; U+FFFD for invalid UTF-8.
char32_t character_before(std::string_view text, std::size_t end) {
  constexpr std::size_t bytes_max = 4;
  std::size_t begin = end - 1;
  while (begin > 0 && end - begin < bytes_max && continues_character(text, begin)) --begin;
  const Character found = first_of_any(text.substr(begin, end - begin));
  return found.size == end - begin ? found.code : replacement;
}

}  // namespace

Tokenizer Tokenizer::load(const std::string& directory) {
  LoadedCodec loaded = plug_in_functions().load(directory);
  Tokenizer tokenizer(std::move(loaded.codec));
  tokenizer.bos_ = loaded.bos;
  tokenizer.eos_ = loaded.eos;
  return tokenizer;
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  std::vector<std::int32_t> ids;
  encode(text, special, ids);
  return ids;
}

void Tokenizer::encode(std::string_view text,
                       SpecialTokens special,
                       std::vector<std::int32_t>& ids) const {
  check_size(text);
  std::string storage;
  codec_->encode(valid_utf8(text, storage), special, ids);
}

std::vector<std::int32_t> Tokenizer::encode_following(std::string_view text) const {
  check_size(text);
  std::string storage;
  std::vector<std::int32_t> ids;
  codec_->encode_following(valid_utf8(text, storage), ids);
  return ids;
}

std::size_t Tokenizer::safe_cut(std::string_view text) const {
  std::unordered_map<std::uint64_t, bool> known;  // a text has few different pairs
  for (std::size_t at = text.empty() ? 0 : text.size() - 1; at > 0; --at) {
    if (continues_character(text, at)) continue;
    const Character right = first_of_any(text.substr(at));
    // The text after it may complete this character.
    if (right.code == replacement && at + right.size == text.size()) continue;
    const char32_t left = character_before(text, at);
    const auto [pair, is_new] = known.emplace(std::uint64_t{left} << 32 | right.code, false);
    if (is_new) pair->second = codec_->allows_cut(left, right.code);
    if (pair->second) return at;
  }
  return 0;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, SpecialText special) const {
  return codec_->decode(ids, special);
}

DecodedPrefix Tokenizer::decode_prefix(std::span<const std::int32_t> ids,
                                       SpecialText special) const {
  return codec_->decode_prefix(ids, special);
}

}  // namespace dstrain::tokenizer
