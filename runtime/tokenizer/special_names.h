#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dstrain::tokenizer {

/// The special tokens in tokenizer_config.json and special_tokens_map.json. The first file wins. If
/// it does not list its added tokens, as in old versions, both must agree.
struct SpecialNames {
  std::optional<std::string> bos;
  std::optional<std::string> eos;
  std::vector<std::string> all;  ///< these and unk, pad, additional ones; no duplicates
  bool add_bos = false;          ///< add_bos_token and add_eos_token, for files without ...
  bool add_eos = false;          ///< ... a post-processor
};

/// Throws Error{input}. Missing files say nothing.
SpecialNames read_special_names(const std::filesystem::path& directory);

}  // namespace dstrain::tokenizer
