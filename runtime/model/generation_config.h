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
  std::vector<std::int32_t> end_tokens{};  ///< eos_token_id: each of them ends a text
  std::optional<bool> do_sample{};
  std::optional<double> temperature{};
  std::optional<std::int64_t> top_k{};
  std::optional<double> top_p{};
  std::optional<std::int64_t> max_new_tokens{};
  std::optional<std::int64_t> max_length{};
  /// Settings that generation does not support and that would change the text: "repetition_penalty
  /// 1.1".
  std::vector<std::string> unsupported{};
};

/// Reads generation_config.json from `companions`, or config.json if there is none, as transformers
/// does. `directory`: of these files, for messages. `class_end_token`: the eos_token_id of the
/// model's class, for a config.json without one. Throws Error{input} for a value of another type.
GenerationConfig read_generation_config(const std::string& directory,
                                        std::string_view config_json,
                                        std::optional<std::int32_t> class_end_token,
                                        std::span<const CompanionFile> companions);

}  // namespace dstrain::model
