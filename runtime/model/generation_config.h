#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/hf_companions.h"

namespace dstrain::model {

/// The defaults for generating text with a model. Settings have Hugging Face's names; absent and
/// null ones are empty.
struct GenerationConfig {
  std::string file;           ///< the source, for messages
  bool has_own_file = false;  ///< the source is generation_config.json, not config.json
  /// eos_token_id of both files, without repeats: each of them ends a text.
  std::vector<std::int32_t> end_tokens{};
  std::vector<std::int32_t> own_end_tokens{};  ///< those of generation_config.json alone
  std::optional<bool> do_sample{};
  std::optional<double> temperature{};
  std::optional<std::int64_t> top_k{};
  std::optional<double> top_p{};
  std::optional<double> min_p{};
  std::optional<double> repetition_penalty{};
  std::optional<std::int64_t> min_new_tokens{};
  std::optional<std::int64_t> min_length{};  ///< counts the prompt, as max_length does
  std::optional<std::int64_t> max_new_tokens{};
  std::optional<std::int64_t> max_length{};
  std::optional<std::int64_t> num_beams{};
  std::optional<double> length_penalty{};
  std::optional<std::string> early_stopping{};  ///< true, false or never
  std::optional<std::int64_t> num_return_sequences{};
  /// Settings that generation does not support and that would change the text:
  /// "no_repeat_ngram_size 3".
  std::vector<std::string> unsupported{};
};

/// Reads generation_config.json from `companions`, or config.json if there is none, as transformers
/// does; but the end tokens of both count. `directory`: of these files, for messages.
/// `class_end_token`: the eos_token_id of the model's class, if neither file has one. Throws
/// Error{input} for a value of another type.
GenerationConfig read_generation_config(const std::string& directory,
                                        std::string_view config_json,
                                        std::optional<std::int32_t> class_end_token,
                                        std::span<const CompanionFile> companions);

}  // namespace dstrain::model
