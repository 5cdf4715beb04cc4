#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/model/hf_companions.h"

namespace dstrain::model {

/// How a model's text is generated unless the caller says otherwise. Settings keep Hugging Face's
/// names; those that are absent or null are empty.
struct GenerationConfig {
  std::string file;                        ///< the source, for messages
  bool has_own_file = false;               ///< that is generation_config.json, and not config.json
  std::vector<std::int32_t> end_tokens{};  ///< eos_token_id: each of them ends a text
  std::optional<bool> do_sample{};
  std::optional<double> temperature{};
  std::optional<std::int64_t> top_k{};
  std::optional<double> top_p{};
  std::optional<std::int64_t> max_new_tokens{};
  std::optional<std::int64_t> max_length{};
  /// Settings that would change the text if generation had them: "repetition_penalty 1.1".
  std::vector<std::string> unsupported{};
};

/// Reads generation_config.json from `companions`. Like transformers, reads config.json in its
/// place, and only then, where there is none. `directory`: of these files, for messages.
/// `class_end_token`: the eos_token_id that the model's class has when config.json does not name
/// one. Throws Error{input} for a value of another type.
GenerationConfig read_generation_config(const std::string& directory,
                                        std::string_view config_json,
                                        std::optional<std::int32_t> class_end_token,
                                        std::span<const CompanionFile> companions);

}  // namespace dstrain::model
