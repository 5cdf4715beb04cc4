#include "runtime/model/model_statements.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/model/config_fields.h"
#include "runtime/model/model_family.h"

namespace dstrain::model {
namespace {

using Names = std::span<const std::string_view>;

/// Rates that an option sets, by the names that families have for them.
struct Rate {
  std::string_view option;
  std::array<std::string_view, 3> keys;
  std::string_view what;
};

constexpr std::array rates{
    Rate{"attention_dropout",
         {"attn_pdrop", "attention_dropout", "dropout_rate"},
         "dropout of attention"},
    Rate{"hidden_dropout",
         {"embd_pdrop", "resid_pdrop", "dropout_rate"},
         "dropout outside attention"},
    Rate{"init_method_std", {"initializer_range"}, "initializer_range"},
};

/// Numbers that an option must match.
struct Number {
  std::string_view option;
  std::array<std::string_view, 3> keys;
};

constexpr std::array numbers{
    Number{"vocab_size", {"vocab_size"}},
    Number{"ffn_hidden_size", {"n_inner", "intermediate_size", "d_ff"}},
    Number{"kv_channels", {"head_dim", "d_kv"}},
    Number{"num_query_groups", {"num_key_value_heads"}},
    Number{"norm_epsilon", {"layer_norm_epsilon", "rms_norm_eps"}},
    Number{"rotary_base", {"rope_theta"}},
    Number{"rotary_percent", {"partial_rotary_factor"}},
};

/// Returns the fields of `keys` that the family has.
std::vector<const ConfigField*> fields_of(const ModelConfig& config, Names keys) {
  std::vector<const ConfigField*> fields;
  for (const ConfigField& field : config.family().fields) {
    if (!field.name.empty() && std::ranges::find(keys, field.name) != keys.end()) {
      fields.push_back(&field);
    }
  }
  return fields;
}

/// Compares statements about a model with the model.
class Statements {
 public:
  Statements(ModelConfig& config, WeightOrigin weights)
      : config_(config), parts_(config.parts()), weights_(weights) {}

  void apply(const ModelStatement& statement);
  void raise() const {
    if (!problems_.empty()) fail(ErrorCode::usage, "{}", fmt::join(problems_, "\n"));
  }

 private:
  void refuse(const ModelStatement& statement, const std::string& why);
  /// Returns the remedy if another kind of model is meant.
  [[nodiscard]] std::string_view other_model() const {
    return weights_ == WeightOrigin::stored
               ? "; leave it out"
               : "; leave it out, or give another preset or a config.json as --config_name";
  }
  void set(const ModelStatement& statement, const Rate& rate);
  void compare(const ModelStatement& statement, const Number& number);
  void compare(const ModelStatement& statement, std::string_view actual, std::string_view what);
  /// `is`: the model's value if the option is true of it; `is_not`: otherwise.
  void compare(const ModelStatement& statement,
               bool actual,
               std::string_view is,
               std::string_view is_not);

  ModelConfig& config_;
  ModelConfig::Parts parts_;
  WeightOrigin weights_;
  std::vector<std::string> set_;  ///< keys that an option has set
  std::vector<std::string> problems_;
};

void Statements::refuse(const ModelStatement& statement, const std::string& why) {
  problems_.push_back(fmt::format("{} {}: {}", statement.typed_as, statement.value, why));
}

void Statements::set(const ModelStatement& statement, const Rate& rate) {
  const float value = parse_number<float>(statement.value).value_or(0);
  const std::vector<const ConfigField*> fields = fields_of(config_, rate.keys);
  if (fields.empty() && value != 0) {
    return refuse(statement, fmt::format("a {} has no {}; leave it out",
                                         config_.family().model_type, rate.what));
  }
  for (const ConfigField* const field : fields) {
    const bool again = std::ranges::find(set_, field->name) != set_.end();
    if (again && std::get<float>(field->access.get(config_)) != value) {
      refuse(statement, fmt::format("the model has one {}, which another option sets to {}; give "
                                    "both the same value",
                                    field->name, std::get<float>(field->access.get(config_))));
    }
    field->access.set(config_, value);
    set_.emplace_back(field->name);
  }
}

void Statements::compare(const ModelStatement& statement, const Number& number) {
  const std::vector<const ConfigField*> fields = fields_of(config_, number.keys);
  const std::optional<double> said = parse_number<double>(statement.value);
  const auto differs = [&](std::string_view key, const std::string& actual, bool adjustable) {
    const bool random = weights_ == WeightOrigin::random && adjustable;
    refuse(statement, fmt::format("the model's {} is {}; leave it out{}", key, actual,
                                  random ? fmt::format(", or set --config_overrides \"{}={}\"", key,
                                                       statement.value)
                                         : ""));
  };
  if (!fields.empty()) {
    const ConfigField& field = *fields.front();
    const ConfigValue value = field.access.get(config_);
    const auto* const size = std::get_if<std::int64_t>(&value);
    const bool same = size != nullptr ? said == static_cast<double>(*size)
                                      : said && static_cast<float>(*said) == std::get<float>(value);
    if (!same) differs(field.name, text_of(field, value), true);
  } else if (number.option == "kv_channels") {
    const auto [keys, size] = config_.head_size();
    if (said != static_cast<double>(size)) differs(keys, fmt::format("{}", size), false);
  } else if (number.option == "num_query_groups") {
    const std::int64_t heads = parts_.key_value_heads;
    if (said != static_cast<double>(heads)) {
      differs("number of key and value heads", fmt::format("{}", heads), false);
    }
  } else if (parts_.positions != "rope") {
    refuse(statement,
           fmt::format("a {} has no rotary positions; leave it out", config_.family().model_type));
  } else if (said != 1.0) {
    refuse(statement, "all of a head turns; leave it out");
  }
}

void Statements::compare(const ModelStatement& statement,
                         std::string_view actual,
                         std::string_view what) {
  if (statement.value == actual) return;
  refuse(statement, fmt::format("the {} of a {} {} {}{}", what, config_.family().model_type,
                                what.ends_with("s") ? "are" : "is", actual, other_model()));
}

void Statements::compare(const ModelStatement& statement,
                         bool actual,
                         std::string_view is,
                         std::string_view is_not) {
  const bool said = statement.value == "true";
  if (said == actual) return;
  problems_.push_back(fmt::format("{}{}: this {} has {}{}", statement.typed_as,
                                  said ? "" : " false", config_.family().model_type,
                                  actual ? is : is_not, other_model()));
}

void Statements::apply(const ModelStatement& statement) {
  const std::string_view option = statement.option;
  const auto* const rate = std::ranges::find(rates, option, &Rate::option);
  if (rate != rates.end()) return set(statement, *rate);
  const auto* const number = std::ranges::find(numbers, option, &Number::option);
  if (number != numbers.end()) return compare(statement, *number);
  if (option == "normalization") return compare(statement, parts_.norm, "normalization");
  if (option == "position_embedding_type") {
    return compare(statement, parts_.positions, "positions");
  }
  struct Fact {
    std::string_view option;
    bool actual;
    std::string_view is, is_not;
  };
  const bool rotary = parts_.positions == "rope";
  const std::array facts{
      Fact{"swiglu", parts_.swiglu, "an MLP with SwiGLU", "an MLP without SwiGLU"},
      Fact{"group_query_attention", parts_.key_value_heads < parts_.heads,
           "heads that share keys and values", "keys and values of its own for each head"},
      Fact{"disable_bias_linear", !parts_.biases, "no biases in its linear layers",
           "biases in its linear layers"},
      Fact{"add_qkv_bias", parts_.qkv_biases, "biases of queries, keys and values",
           "no biases of queries, keys and values"},
      Fact{"untie_embeddings_and_output_weights", !parts_.tied, "a head with its own weights",
           "a head with the weights of the embedding"},
      Fact{"use_rotary_position_embeddings", rotary, "rotary positions", "no rotary positions"},
      Fact{"no_position_embedding", parts_.positions != "learned_absolute", "no learned positions",
           "learned positions"},
  };
  const auto* const fact = std::ranges::find(facts, option, &Fact::option);
  DSTRAIN_CHECK(fact != facts.end(), "no model is compared with {}", option);
  compare(statement, fact->actual, fact->is, fact->is_not);
}

}  // namespace

void apply_statements(ModelConfig& config,
                      std::span<const ModelStatement> statements,
                      WeightOrigin weights) {
  Statements said(config, weights);
  for (const ModelStatement& statement : statements) said.apply(statement);
  said.raise();
}

}  // namespace dstrain::model
