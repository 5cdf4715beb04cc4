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
    Unsupported{"encoder_no_repeat_ngram_size", "0"},
    Unsupported{"encoder_repetition_penalty", "1"},
    Unsupported{"epsilon_cutoff", "0"},
    Unsupported{"eta_cutoff", "0"},
    Unsupported{"exponential_decay_length_penalty", "null"},
    Unsupported{"forced_bos_token_id", "null"},
    Unsupported{"forced_eos_token_id", "null"},
    Unsupported{"guidance_scale", "1"},
    Unsupported{"max_time", "null"},
    Unsupported{"min_length", "0"},
    Unsupported{"min_new_tokens", "0"},
    Unsupported{"min_p", "0"},
    Unsupported{"no_repeat_ngram_size", "0"},
    Unsupported{"num_beams", "1"},
    Unsupported{"num_return_sequences", "1"},
    Unsupported{"penalty_alpha", "0"},
    Unsupported{"repetition_penalty", "1"},
    Unsupported{"sequence_bias", "null"},
    Unsupported{"stop_strings", "null"},
    Unsupported{"suppress_tokens", "null"},
    Unsupported{"typical_p", "1"},
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

std::vector<std::string> find_unsupported(const Json& document) {
  std::vector<std::string> found;
  for (const auto& [key, neutral] : unsupported_settings) {
    const Json value = document.value(key, Json());
    if (value.is_null() || value == Json::parse(neutral)) continue;
    found.push_back(fmt::format("{} {}", key, value.dump()));
  }
  return found;
}

GenerationConfig read(const Json& document, std::string file, bool is_own) {
  GenerationConfig config{.file = std::move(file), .has_own_file = is_own};
  take(document, config.file, "do_sample", config.do_sample);
  take(document, config.file, "temperature", config.temperature);
  take(document, config.file, "top_k", config.top_k);
  take(document, config.file, "top_p", config.top_p);
  take(document, config.file, "max_new_tokens", config.max_new_tokens);
  take(document, config.file, "max_length", config.max_length);
  const Json end = document.value("eos_token_id", Json());
  if (!end.is_null()) config.end_tokens = tokens_of(config.file, "eos_token_id", end);
  config.unsupported = find_unsupported(document);
  return config;
}

}  // namespace

GenerationConfig read_generation_config(const std::string& directory,
                                        std::string_view config_json,
                                        std::optional<std::int32_t> class_end_token,
                                        std::span<const CompanionFile> companions) {
  const auto own = std::ranges::find(companions, generation_config_file, &CompanionFile::name);
  if (own != companions.end()) {
    const std::string file = fmt::format("{}/{}", directory, own->name);
    return read(parse_json_object(own->bytes, file), file, true);
  }
  const std::string file = directory + "/config.json";
  Json document = parse_json_object(config_json, file);
  if (class_end_token && !document.contains("eos_token_id")) {
    document["eos_token_id"] = *class_end_token;
  }
  return read(document, file, false);
}

}  // namespace dstrain::model
