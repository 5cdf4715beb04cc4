#include <algorithm>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/model/gpt2_config.h"
#include "runtime/model/gpt2_config_fields.h"
#include "runtime/model/hf_names.h"

namespace dstrain::model {
namespace {

using Json = nlohmann::json;
using Document = nlohmann::ordered_json;

constexpr const char* tokenizer_key = "dstrain_tokenizer";
constexpr std::int64_t end_of_text = 50256;  ///< GPT-2's, and Hugging Face's when not given

/// What a key must say for the numbers to be those that are built; absent means `built`.
struct FixedOption {
  const char* key;
  bool built;
};
constexpr std::array<FixedOption, 5> fixed_options{{{"tie_word_embeddings", true},
                                                    {"scale_attn_weights", true},
                                                    {"scale_attn_by_inverse_layer_idx", false},
                                                    {"reorder_and_upcast_attn", false},
                                                    {"add_cross_attention", false}}};

/// The value of a key; null counts as absent.
const Json* find(const Json& document, std::string_view key) {
  const auto found = document.find(key);
  return found == document.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::int64_t> size_of_key(const Json& document,
                                        std::string_view key,
                                        const std::string& path) {
  const Json* const value = find(document, key);
  if (value == nullptr) return std::nullopt;
  // A number beyond 2^63 is unsigned; the range check would see it wrapped around.
  const bool whole = value->is_number_integer() &&
                     !(value->is_number_unsigned() && value->get<std::uint64_t>() >> 63 != 0);
  if (!whole) {
    fail(ErrorCode::input, "{}: {} must be a whole number, got {}", path, key, value->dump());
  }
  return value->get<std::int64_t>();
}

/// A size under its own name or an alias; both must agree.
std::optional<std::int64_t> read_size(const Json& document,
                                      std::string_view key,
                                      std::string_view alias,
                                      const std::string& path) {
  const auto own = size_of_key(document, key, path);
  const auto other = alias.empty() ? std::nullopt : size_of_key(document, alias, path);
  if (own && other && *own != *other) {
    fail(ErrorCode::input, "{}: {} is {}, but {} is {}", path, key, *own, alias, *other);
  }
  return own ? own : other;
}

void check_kind(const Json& document, const std::string& path) {
  const Json type = document.value("model_type", Json());
  if (type != "gpt2") {
    fail(ErrorCode::input, "{}: model_type is {}; only \"gpt2\" is built", path, type.dump());
  }
  const Json activation = document.value("activation_function", Json("gelu_new"));
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    fail(ErrorCode::input,
         "{}: activation_function is {}; only \"gelu_new\" and \"gelu_pytorch_tanh\" are built",
         path, activation.dump());
  }
  for (const FixedOption& option : fixed_options) {
    const Json* const value = find(document, option.key);
    if (value != nullptr && *value != option.built) {
      fail(ErrorCode::input, "{}: {} is {}; only {} is built", path, option.key, value->dump(),
           option.built);
    }
  }
  if (find(document, "quantization_config") != nullptr) {
    fail(ErrorCode::input, "{}: quantization_config: quantized weights cannot be trained", path);
  }
}

/// The shortest decimal that reads back as the same float, so that 1e-5F is written 1e-05.
double shortest(float value) {
  return Json::parse(fmt::format("{}", value)).get<double>();
}

Document size_value(const Gpt2Config& config, const SizeField& field) {
  const bool follows = field.member == &Gpt2Config::n_inner && config.n_inner == 4 * config.n_embd;
  return follows ? Document() : Document(config.*field.member);
}

/// Of a model without a source.
Document new_document(const Gpt2Config& config) {
  Document document{{"architectures", {"GPT2LMHeadModel"}},
                    {"model_type", "gpt2"},
                    {"activation_function", "gelu_new"},
                    {"tie_word_embeddings", true},
                    {"torch_dtype", nullptr}};
  for (const SizeField& field : size_fields) document[field.name] = size_value(config, field);
  document["n_ctx"] = config.n_positions;
  for (const RateField& field : rate_fields) {
    document[field.name] = shortest(config.*field.member);
  }
  const bool has_end_of_text = config.vocab_size > end_of_text;
  for (const char* const key : {"bos_token_id", "eos_token_id"}) {
    document[key] = has_end_of_text ? Document(end_of_text) : Document();
  }
  return document;
}

/// Ids of special tokens that the vocabulary no longer holds.
void drop_lost_ids(Document& document, std::int64_t vocabulary) {
  for (const char* const key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    const bool defaults = std::string_view(key) != "pad_token_id";
    const Document id = document.contains(key) ? document[key]
                        : defaults             ? Document(end_of_text)
                                               : Document();
    const auto lost = [&](const Document& one) {
      return one.is_number() && one.get<double>() >= static_cast<double>(vocabulary);
    };
    const bool any = id.is_array() ? std::any_of(id.begin(), id.end(), lost) : lost(id);
    if (any) document[key] = nullptr;
  }
}

/// The source with what is another in `config`.
Document changed_document(const Gpt2Config& config) {
  auto document = Document::parse(config.source);
  const Gpt2Config before = parse_gpt2_config(config.source, "config.json");
  document["architectures"] = {"GPT2LMHeadModel"};
  for (const SizeField& field : size_fields) {
    const bool kept = document.contains(field.name) &&
                      (before.*field.member == config.*field.member) &&
                      (!document[field.name].is_null() || size_value(config, field).is_null());
    if (!kept) document[field.name] = size_value(config, field);
    if (!field.alias.empty()) document.erase(std::string(field.alias));
  }
  if (document.contains("n_ctx") && before.n_positions != config.n_positions) {
    document["n_ctx"] = config.n_positions;
  }
  for (const RateField& field : rate_fields) {
    const bool kept = document.contains(field.name) && !document[field.name].is_null() &&
                      before.*field.member == config.*field.member;
    if (!kept) document[field.name] = shortest(config.*field.member);
  }
  if (before.vocab_size != config.vocab_size) drop_lost_ids(document, config.vocab_size);
  return document;
}

}  // namespace

Gpt2Config parse_gpt2_config(const std::string& text, const std::string& path) {
  const Json document = parse_json_object(text, path);
  check_kind(document, path);
  Gpt2Config config;
  config.source = text;
  config.byte_tokens = document.value(tokenizer_key, Json()) == "byte";
  bool inner_given = false;
  for (const SizeField& field : size_fields) {
    const auto value = read_size(document, field.name, field.alias, path);
    if (value) config.*field.member = *value;
    if (field.member == &Gpt2Config::n_inner) inner_given = value.has_value();
  }
  for (const RateField& field : rate_fields) {
    const Json* const value = find(document, field.name);
    if (value != nullptr && !value->is_number()) {
      fail(ErrorCode::input, "{}: {} must be a number, got {}", path, field.name, value->dump());
    }
    config.*field.member = value == nullptr ? field.hugging_face : value->get<float>();
  }
  if (!inner_given && range_problems(config).empty()) config.n_inner = 4 * config.n_embd;
  try {
    check(config);
  } catch (const Error& error) {
    fail(ErrorCode::input, "{}: {}", path, error.what());
  }
  return config;
}

std::string to_json(const Gpt2Config& config, DType dtype) {
  Document document = config.source.empty() ? new_document(config) : changed_document(config);
  if (config.byte_tokens) document[tokenizer_key] = "byte";
  return with_torch_dtype(document.dump(), dtype);
}

}  // namespace dstrain::model
