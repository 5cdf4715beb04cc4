#include "runtime/model/hf_companions.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <span>

#include "runtime/base/error.h"
#include "runtime/model/hf_directory.h"
#include "runtime/os/fd_io.h"
#include "runtime/os/file.h"

namespace dstrain::model {
namespace {

constexpr std::array<std::string_view, 13> companion_names{
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    generation_config_file,
    "merges.txt",
    "sentencepiece.bpe.model",
    "special_tokens_map.json",
    "spiece.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
};

}  // namespace

bool is_companion(std::string_view name) {
  return std::ranges::find(companion_names, name) != companion_names.end();
}

bool is_of_tokenizer(const CompanionFile& file) {
  return file.name != generation_config_file;
}

std::vector<CompanionFile> read_tokenizer_files(const std::string& directory) {
  std::vector<CompanionFile> files = read_companions(directory);
  std::erase_if(files, std::not_fn(is_of_tokenizer));
  return files;
}

std::vector<CompanionFile> read_companions(const std::string& directory) {
  const std::filesystem::path root(directory);
  std::vector<CompanionFile> files;
  for (const std::string_view name : companion_names) {
    const std::string path = (root / name).string();
    if (!is_there(path)) continue;
    CompanionFile file{std::string(name), {}};
    const UniqueFd fd = open_regular(path);
    const Bytes bytes = regular_bytes(fd.get(), path);
    if (bytes > companion_bytes_max) {
      fail(ErrorCode::input, "{}: {} is more than the {} allowed for such a file", path,
           format_bytes(bytes), format_bytes(companion_bytes_max));
    }
    file.bytes.resize(static_cast<std::size_t>(bytes));
    file.bytes.resize(
        read_fully_at(fd.get(), 0, std::as_writable_bytes(std::span(file.bytes)), path));
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace dstrain::model
