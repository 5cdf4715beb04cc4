#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace dstrain::tokenizer {

/// What tokenizer_config.json and special_tokens_map.json say of special tokens; the first counts.
/// If it does not list its added tokens, as files of old versions, the two must agree.
struct SpecialNames {
  std::optional<std::string> bos;
  std::optional<std::string> eos;
  std::vector<std::string> all;  ///< these and the others: unk, pad, additional ones; none twice
  bool add_bos = false;  ///< add_bos_token and add_eos_token: of texts of files that have no
  bool add_eos = false;  ///< post-processor
};

/// Throws Error{input}. Missing files say nothing.
SpecialNames read_special_names(const std::filesystem::path& directory);

}  // namespace dstrain::tokenizer
