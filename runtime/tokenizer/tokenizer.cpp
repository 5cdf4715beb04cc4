#include "runtime/tokenizer/tokenizer.h"

#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/base/utf8.h"
#include "runtime/tokenizer/gpt2_files.h"
#include "runtime/tokenizer/sentencepiece_codec.h"
#include "runtime/tokenizer/special_names.h"
#include "runtime/tokenizer/tokenizer_json.h"

namespace dstrain::tokenizer {
namespace {

namespace fs = std::filesystem;

constexpr Bytes tokenizer_bytes_max = 256 * mebibyte;
constexpr std::size_t text_bytes_max = std::size_t{1} << 30;

std::unique_ptr<const Codec> load_codec(const fs::path& directory, const SpecialNames& names) {
  const fs::path json = directory / "tokenizer.json";
  if (fs::exists(json)) {
    return parse_tokenizer_json(read_text_file(json, tokenizer_bytes_max), json.string());
  }
  if (fs::exists(directory / "vocab.json") && fs::exists(directory / "merges.txt")) {
    return load_gpt2_files(directory, names);
  }
  const fs::path sentencepiece = directory / "tokenizer.model";
  if (fs::exists(sentencepiece)) return load_sentencepiece(sentencepiece, names);
  fail(ErrorCode::input,
       "{}: holds no tokenizer: neither tokenizer.json, nor vocab.json and merges.txt, nor "
       "tokenizer.model",
       directory.string());
}

}  // namespace

Tokenizer Tokenizer::load(const std::string& directory) {
  const SpecialNames names = read_special_names(directory);
  Tokenizer tokenizer(load_codec(directory, names));
  if (names.bos) tokenizer.bos_ = tokenizer.id(*names.bos);
  if (names.eos) tokenizer.eos_ = tokenizer.id(*names.eos);
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
