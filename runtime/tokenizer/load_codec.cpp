#include "runtime/tokenizer/load_codec.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "runtime/base/error.h"
#include "runtime/base/shell_word.h"
#include "runtime/os/file.h"
#include "runtime/tokenizer/gpt2_files.h"
#include "runtime/tokenizer/sentencepiece_codec.h"
#include "runtime/tokenizer/special_names.h"
#include "runtime/tokenizer/tokenizer_json.h"

namespace dstrain::tokenizer {
namespace {

namespace fs = std::filesystem;

constexpr Bytes tokenizer_bytes_max = 256 * mebibyte;

/// Whether the file has lines of a base64 token and its rank, like Llama 3's own tokenizer.model.
bool is_tiktoken(const fs::path& path) {
  constexpr std::size_t longest_line = 1024;
  std::ifstream in(path, std::ios::binary);
  std::string line(longest_line, '\0');
  in.read(line.data(), std::ssize(line));
  line.resize(std::min(line.find('\n'), static_cast<std::size_t>(in.gcount())));
  const std::size_t space = line.find(' ');
  if (space == line.npos || space == 0) return false;
  const auto in_base64 = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '/' || c == '=';
  };
  return std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(space), in_base64) &&
         line.find_first_not_of("0123456789\r", space + 1) == line.npos && space + 1 < line.size();
}

/// Returns "D/tekken.json: a tokenizer of Mistral's own format; ..."; empty: no known file.
std::string explain_other_tokenizer(const fs::path& directory) {
  const auto convert = [&](const char* file, const char* format) {
    return fmt::format(
        "{}: a tokenizer in {}, which is not read; make a tokenizer.json of it:\n"
        "  python3 -c \"import sys; from transformers import AutoTokenizer as T; a = sys.argv[1]; "
        "T.from_pretrained(a).save_pretrained(a)\" {}",
        (directory / file).string(), format, shell_path(directory.string()));
  };
  if (fs::exists(directory / "spiece.model")) return convert("spiece.model", "T5's form");
  if (fs::exists(directory / "tekken.json"))
    return convert("tekken.json", "Mistral's form, tekken");
  if (is_tiktoken(directory / "tokenizer.model"))
    return convert("tokenizer.model", "tiktoken's form");
  return {};
}

LoadedCodec choose_codec(const fs::path& directory, const SpecialNames& names) {
  const fs::path json = directory / "tokenizer.json";
  if (fs::exists(json)) {
    return {parse_tokenizer_json(read_text_file(json, tokenizer_bytes_max), json.string()), {}, {}};
  }
  if (fs::exists(directory / "vocab.json") && fs::exists(directory / "merges.txt")) {
    return {load_gpt2_files(directory, names), {}, {}};
  }
  const std::string other = explain_other_tokenizer(directory);
  if (!other.empty()) fail(ErrorCode::input, "{}", other);
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
