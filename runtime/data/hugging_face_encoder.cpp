#include "runtime/data/hugging_face_encoder.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "runtime/base/sha256.h"
#include "runtime/os/file.h"
#include "runtime/os/mapped_file.h"
#include "runtime/os/random_bytes.h"

namespace dstrain::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array tokenizer_files{"tokenizer.json",
                                     "vocab.json",
                                     "merges.txt",
                                     "tokenizer.model",
                                     "tokenizer_config.json",
                                     "special_tokens_map.json",
                                     "chat_template.jinja"};

}  // namespace

std::string tokenizer_identity(const std::string& directory) {
  std::string digests;
  for (const char* const name : tokenizer_files) {
    const fs::path path = fs::path(directory) / name;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) continue;
    const MappedFile file(path.string());
    const auto bytes = file.bytes();
    digests += name;
    digests += to_hex(
        sha256(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size())));
  }
  return to_hex(sha256(digests));
}

HuggingFaceEncoder::HuggingFaceEncoder(const std::string& directory)
    : tokenizer_(tokenizer::Tokenizer::load(directory)),
      identity_(tokenizer_identity(directory)),
      chat_template_(ChatTemplate::load(directory)) {}

HuggingFaceEncoder::Around HuggingFaceEncoder::around() const {
  const std::string_view any = "a";
  const std::vector<std::int32_t> plain = tokenizer_.encode(any);
  const std::vector<std::int32_t> ids = tokenizer_.encode(any, tokenizer::SpecialTokens::added);
  const auto text = std::search(ids.begin(), ids.end(), plain.begin(), plain.end());
  if (text == ids.end()) return {ids, {}};
  return {{ids.begin(), text}, {text + std::ssize(plain), ids.end()}};
}

bool has_tokenizer(const std::string& directory) {
  const fs::path path(directory);
  const auto has = [&](const char* name) {
    return is_there(path / name);
  };
  return has("tokenizer.json") || (has("vocab.json") && has("merges.txt")) ||
         has("tokenizer.model") || has("spiece.model") || has("tekken.json");
}

}  // namespace dstrain::data
