#include "runtime/tokenizer/load_codec.h"

#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/base/file.h"
#include "runtime/tokenizer/gpt2_files.h"
#include "runtime/tokenizer/sentencepiece_codec.h"
#include "runtime/tokenizer/special_names.h"
#include "runtime/tokenizer/tokenizer_json.h"

namespace dstrain::tokenizer {
namespace {

namespace fs = std::filesystem;

constexpr Bytes tokenizer_bytes_max = 256 * mebibyte;

LoadedCodec choose_codec(const fs::path& directory, const SpecialNames& names) {
  const fs::path json = directory / "tokenizer.json";
  if (fs::exists(json)) {
    return {parse_tokenizer_json(read_text_file(json, tokenizer_bytes_max), json.string()), {}, {}};
  }
  if (fs::exists(directory / "vocab.json") && fs::exists(directory / "merges.txt")) {
    return {load_gpt2_files(directory, names), {}, {}};
  }
  const fs::path sentencepiece = directory / "tokenizer.model";
  if (fs::exists(sentencepiece)) return load_sentencepiece(sentencepiece, names);
  if (!fs::is_directory(directory)) {
    fail(ErrorCode::input, "{}: is no directory; name the one with the tokenizer's files",
         directory.string());
  }
  fail(ErrorCode::input,
       "{}: holds no tokenizer: neither tokenizer.json, nor vocab.json and merges.txt, nor "
       "tokenizer.model",
       directory.string());
}

}  // namespace

LoadedCodec load_codec(const std::string& directory) {
  const SpecialNames names = read_special_names(directory);
  LoadedCodec loaded = choose_codec(directory, names);
  const auto named = [&](const char* key, const std::optional<std::string>& name,
                         std::optional<std::int32_t>& id) {
    if (!name) return;
    id = loaded.codec->id(*name);
    if (id) return;
    fail(ErrorCode::input, "{}: the {} of its files, {}, is not in the vocabulary", directory, key,
         *name);
  };
  named("bos_token", names.bos, loaded.bos);
  named("eos_token", names.eos, loaded.eos);
  return loaded;
}

}  // namespace dstrain::tokenizer
