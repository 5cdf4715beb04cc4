#include "runtime/data/hugging_face_encoder.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

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
                                     "chat_template.jinja",
                                     "chat_template.json"};

/// Returns the name and the digest of a file; empty: it is not there.
std::string digest_of(const fs::path& directory, const std::string& name) {
  std::error_code ignored;
  if (!fs::exists(directory / name, ignored)) return {};
  const MappedFile file((directory / name).string());
  const auto bytes = file.bytes();
  return name + to_hex(sha256(
                    std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size())));
}

std::string identity_with(const std::string& directory, const ChatOptions& options) {
  std::string identity = tokenizer_identity(directory);
  if (!options.date) return identity;
  return to_hex(sha256(fmt::format("{} {}-{}-{}", identity, static_cast<int>(options.date->year()),
                                   static_cast<unsigned>(options.date->month()),
                                   static_cast<unsigned>(options.date->day()))));
}

}  // namespace

std::string tokenizer_identity(const std::string& directory) {
  std::string digests;
  for (const char* const name : tokenizer_files) digests += digest_of(directory, name);
  for (const fs::path& file : additional_chat_templates(directory)) {
    digests += digest_of(directory, (file.parent_path().filename() / file.filename()).string());
  }
  return to_hex(sha256(digests));
}

HuggingFaceEncoder::HuggingFaceEncoder(const std::string& directory, const ChatOptions& options)
    : tokenizer_(tokenizer::Tokenizer::load(directory)),
      identity_(identity_with(directory, options)),
      chat_template_(ChatTemplate::load(directory, options)) {}

HuggingFaceEncoder::Around HuggingFaceEncoder::around() const {
  const std::string_view any = "a";
  const std::vector<std::int32_t> plain = tokenizer_.encode(any);
  const std::vector<std::int32_t> ids = tokenizer_.encode(any, tokenizer::SpecialTokens::added);
  const auto text = std::search(ids.begin(), ids.end(), plain.begin(), plain.end());
  if (text == ids.end()) return {ids, {}};
  return {{ids.begin(), text}, {text + std::ssize(plain), ids.end()}};
}

std::optional<ByteRange> HuggingFaceEncoder::first_special(std::string_view text) const {
  const std::vector<std::int32_t> ids = tokenizer_.encode(text);
  for (const std::int32_t id : ids) {
    const std::optional<std::string> name = tokenizer_.token(id);
    const bool is_special =
        tokenizer_.decode(std::span(&id, 1), tokenizer::SpecialText::skipped).empty();
    if (!is_special || !name || name->empty()) continue;
    const std::size_t at = text.find(*name);
    if (at != std::string_view::npos) return ByteRange{at, at + name->size()};
  }
  return std::nullopt;
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
