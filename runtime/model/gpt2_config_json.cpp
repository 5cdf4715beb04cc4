#include <optional>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/model/gpt2_config.h"
#include "runtime/model/gpt2_config_fields.h"
#include "runtime/model/hf_names.h"
#include "runtime/model/json_text.h"

namespace dstrain::model {
namespace {

using Json = nlohmann::json;

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

}  // namespace

Gpt2Config parse_gpt2_config(const std::string& text, const std::string& path) {
  const Json document = parse_json_object(text, path);
  check_kind(document, path);
  Gpt2Config config;
  bool inner_given = false;
  for (const SizeField& field : size_fields) {
    const auto value = read_size(document, field.name, field.alias, path);
    if (value) config.*field.member = *value;
    if (field.member == &Gpt2Config::n_inner) inner_given = value.has_value();
  }
  const auto context = read_size(document, "n_ctx", "n_positions", path);
  if (context) config.n_positions = *context;
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
  nlohmann::ordered_json document{{"architectures", {"GPT2LMHeadModel"}},
                                  {"model_type", "gpt2"},
                                  {"activation_function", "gelu_new"},
                                  {"tie_word_embeddings", true},
                                  {"torch_dtype", torch_dtype_name(dtype)}};
  for (const SizeField& field : size_fields) document[field.name] = config.*field.member;
  if (config.n_inner == 4 * config.n_embd) document["n_inner"] = nullptr;
  document["n_ctx"] = config.n_positions;
  for (const RateField& field : rate_fields) {
    document[field.name] = shortest(config.*field.member);
  }
  // GPT-2's own <|endoftext|> does not exist in a smaller vocabulary.
  const bool has_end_of_text = config.vocab_size == 50257;
  for (const char* const key : {"bos_token_id", "eos_token_id"}) {
    document[key] = has_end_of_text ? nlohmann::ordered_json(50256) : nullptr;
  }
  return document.dump(2) + "\n";
}

}  // namespace dstrain::model
