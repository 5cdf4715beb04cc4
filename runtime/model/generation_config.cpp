#include "runtime/model/generation_config.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"

namespace dstrain::model {
namespace {

using Json = nlohmann::json;

/// A setting that generation does not support, and its neutral value.
struct Unsupported {
  const char* key;
  const char* neutral;
};

constexpr std::array unsupported_settings{
    Unsupported{"bad_words_ids", "null"},
    Unsupported{"begin_suppress_tokens", "null"},
    Unsupported{"constraints", "null"},
    Unsupported{"diversity_penalty", "0"},
    Unsupported{"dola_layers", "null"},
    Unsupported{"encoder_no_repeat_ngram_size", "0"},
    Unsupported{"encoder_repetition_penalty", "1"},
    Unsupported{"epsilon_cutoff", "0"},
    Unsupported{"eta_cutoff", "0"},
    Unsupported{"exponential_decay_length_penalty", "null"},
    Unsupported{"force_words_ids", "null"},
    Unsupported{"forced_bos_token_id", "null"},
    Unsupported{"forced_eos_token_id", "null"},
    Unsupported{"guidance_scale", "1"},
    Unsupported{"max_time", "null"},
    Unsupported{"no_repeat_ngram_size", "0"},
    Unsupported{"num_beam_groups", "1"},
    Unsupported{"penalty_alpha", "0"},
    Unsupported{"sequence_bias", "null"},
    Unsupported{"stop_strings", "null"},
    Unsupported{"suppress_tokens", "null"},
    Unsupported{"token_healing", "false"},
    Unsupported{"top_h", "null"},
    Unsupported{"typical_p", "1"},
    Unsupported{"watermarking_config", "null"},
};

[[noreturn]] void refuse(const std::string& file,
                         const char* key,
                         const char* needs,
                         const Json& value) {
  fail(ErrorCode::input, "{}: {} must be {}, got {}", file, key, needs, value.dump());
}

bool is_token(const Json& value) {
  return value.is_number_integer() && value >= 0 &&
         value <= std::numeric_limits<std::int32_t>::max();
}

std::vector<std::int32_t> tokens_of(const std::string& file, const char* key, const Json& value) {
  const Json list = value.is_array() ? value : Json::array({value});
  if (!std::all_of(list.begin(), list.end(), is_token)) {
    refuse(file, key, "a token id or a list of token ids", value);
  }
  return list.get<std::vector<std::int32_t>>();
}

template <class T>
void take(const Json& document, const std::string& file, const char* key, std::optional<T>& value) {
  const auto found = document.find(key);
  if (found == document.end() || found->is_null()) return;
  if constexpr (std::is_same_v<T, bool>) {
    if (!found->is_boolean()) refuse(file, key, "true or false", *found);
  } else if constexpr (std::is_same_v<T, double>) {
    if (!found->is_number()) refuse(file, key, "a number", *found);
  } else {
    if (!found->is_number_integer()) refuse(file, key, "a whole number", *found);
  }
  value = found->get<T>();
}

/// true, false or "never".
void take_early_stopping(const Json& document,
                         const std::string& file,
                         std::optional<std::string>& value) {
  const Json found = document.value("early_stopping", Json());
  if (found.is_null()) return;
  if (!found.is_boolean() && found != "never") {
    refuse(file, "early_stopping", "true, false or \"never\"", found);
  }
  value = found.is_boolean() ? found.dump() : found.get<std::string>();
}

std::vector<std::string> find_unsupported(const Json& document) {
  std::vector<std::string> found;
  for (const auto& [key, neutral] : unsupported_settings) {
    const Json value = document.value(key, Json());
    if (value.is_null() || value == Json::parse(neutral)) continue;
    found.push_back(fmt::format("{} {}", key, value.dump()));
  }
  return found;
}

/// Adds the eos_token_id of a file that are not in `ends` yet.
void add_end_tokens(const Json& document,
                    const std::string& file,
                    std::vector<std::int32_t>& ends) {
  const Json value = document.value("eos_token_id", Json());
  if (value.is_null()) return;
  for (const std::int32_t token : tokens_of(file, "eos_token_id", value)) {
    if (std::ranges::find(ends, token) == ends.end()) ends.push_back(token);
  }
}

GenerationConfig read_settings(const Json& document, std::string file, bool is_own) {
  GenerationConfig config{.file = std::move(file), .has_own_file = is_own};
  take(document, config.file, "do_sample", config.do_sample);
  take(document, config.file, "temperature", config.temperature);
  take(document, config.file, "top_k", config.top_k);
  take(document, config.file, "top_p", config.top_p);
  take(document, config.file, "min_p", config.min_p);
  take(document, config.file, "repetition_penalty", config.repetition_penalty);
  take(document, config.file, "min_new_tokens", config.min_new_tokens);
  take(document, config.file, "min_length", config.min_length);
  take(document, config.file, "max_new_tokens", config.max_new_tokens);
  take(document, config.file, "max_length", config.max_length);
  take(document, config.file, "num_beams", config.num_beams);
  take(document, config.file, "length_penalty", config.length_penalty);
  take_early_stopping(document, config.file, config.early_stopping);
  take(document, config.file, "num_return_sequences", config.num_return_sequences);
  config.unsupported = find_unsupported(document);
  return config;
}

}  // namespace

GenerationConfig read_generation_config(const std::string& directory,
                                        std::string_view config_json,
                                        std::optional<std::int32_t> class_end_token,
                                        std::span<const CompanionFile> companions) {
  const std::string model_file = directory + "/config.json";
  const Json model = parse_json_object(config_json, model_file);
  const auto own = std::ranges::find(companions, generation_config_file, &CompanionFile::name);
  GenerationConfig config;
  if (own == companions.end()) {
    config = read_settings(model, model_file, false);
  } else {
    const std::string file = fmt::format("{}/{}", directory, own->name);
    const Json document = parse_json_object(own->bytes, file);
    config = read_settings(document, file, true);
    add_end_tokens(document, file, config.own_end_tokens);
  }
  config.end_tokens = config.own_end_tokens;
  add_end_tokens(model, model_file, config.end_tokens);
  if (config.end_tokens.empty() && class_end_token && !model.contains("eos_token_id")) {
    config.end_tokens = {*class_end_token};
  }
  return config;
}

}  // namespace dstrain::model
