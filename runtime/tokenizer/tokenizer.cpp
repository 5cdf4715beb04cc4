#include "runtime/tokenizer/tokenizer.h"

#include "runtime/base/error.h"
#include "runtime/base/utf8.h"
#include "runtime/tokenizer/plug_in.h"

namespace dstrain::tokenizer {
namespace {

constexpr std::size_t text_bytes_max = std::size_t{1} << 30;

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
  if (text.size() > text_bytes_max) {
    fail(ErrorCode::input, "a text of {} bytes is too large to encode at once: at most {}",
         text.size(), text_bytes_max);
  }
  std::string storage;
  codec_->encode(valid_utf8(text, storage), special, ids);
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, SpecialText special) const {
  return codec_->decode(ids, special);
}

}  // namespace dstrain::tokenizer
