#include "runtime/model/model_statements.h"

#include "runtime/model/families.h"
#include "runtime/model/gpt2_config.h"
#include "runtime/model/llama_config.h"
#include "runtime/model/t5_config.h"
#include "tests/safetensors/files.h"
#include "tests/support/catch.h"

namespace dstrain::test {
namespace {

using model::ModelStatement;
using model::WeightOrigin;

std::unique_ptr<model::ModelConfig> config_of(const std::string& text) {
  return model::parse_model_config(text, "c");
}

const std::string gpt2 = R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2})";
const std::string llama =
    R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
        "num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 96})";
const std::string t5 = R"({"model_type": "t5", "d_model": 64})";

/// What is wrong with "--OPTION VALUE" for a model.
std::string told(const std::string& text,
                 const std::string& option,
                 const std::string& value,
                 WeightOrigin weights = WeightOrigin::stored) {
  const auto config = config_of(text);
  const std::string typed_as = "--" + option;
  const ModelStatement statement{option, typed_as, value};
  return error_of([&] { model::apply_statements(*config, {&statement, 1}, weights); });
}

}  // namespace

TEST_CASE("ModelStatements: what is true of a model is accepted", "[model]") {
  struct Row {
    std::string text, option, value, other;
  };
  const Row row = GENERATE(values<Row>({
      {gpt2, "normalization", "LayerNorm", "RMSNorm"},
      {llama, "normalization", "RMSNorm", "LayerNorm"},
      {t5, "normalization", "RMSNorm", "LayerNorm"},
      {gpt2, "position_embedding_type", "learned_absolute", "rope"},
      {llama, "position_embedding_type", "rope", "learned_absolute"},
      {t5, "position_embedding_type", "relative", "learned_absolute"},
      {gpt2, "norm_epsilon", "1e-5", "1e-6"},
      {llama, "norm_epsilon", "1e-06", "1e-5"},
      {gpt2, "vocab_size", "50257", "50304"},
      {gpt2, "ffn_hidden_size", "256", "128"},
      {llama, "ffn_hidden_size", "96", "256"},
      {gpt2, "kv_channels", "16", "64"},
      {llama, "kv_channels", "16", "64"},
      {gpt2, "num_query_groups", "4", "2"},
      {llama, "num_query_groups", "2", "4"},
      {llama, "rotary_base", "10000", "500000"},
      {llama, "rotary_percent", "1.0", "0.5"},
      {gpt2, "swiglu", "false", "true"},
      {llama, "swiglu", "true", "false"},
      {llama, "group_query_attention", "true", "false"},
      {gpt2, "group_query_attention", "false", "true"},
      {llama, "disable_bias_linear", "true", "false"},
      {gpt2, "disable_bias_linear", "false", "true"},
      {gpt2, "add_qkv_bias", "true", "false"},
      {llama, "add_qkv_bias", "false", "true"},
      {llama, "untie_embeddings_and_output_weights", "true", "false"},
      {gpt2, "untie_embeddings_and_output_weights", "false", "true"},
      {llama, "use_rotary_position_embeddings", "true", "false"},
      {gpt2, "use_rotary_position_embeddings", "false", "true"},
      {llama, "no_position_embedding", "true", "false"},
      {gpt2, "no_position_embedding", "false", "true"},
  }));
  CAPTURE(row.option, row.text);
  CHECK(told(row.text, row.option, row.value) == "");
  CHECK(told(row.text, row.option, row.other).starts_with("--" + row.option));
}

TEST_CASE("ModelStatements: a wrong statement names the true value and the remedy", "[model]") {
  CHECK(told(gpt2, "ffn_hidden_size", "128", WeightOrigin::random) ==
        "--ffn_hidden_size 128: the model's n_inner is 256; leave it out, or set "
        "--config_overrides \"n_inner=128\"");
  CHECK(told(gpt2, "ffn_hidden_size", "128") ==
        "--ffn_hidden_size 128: the model's n_inner is 256; leave it out");
  CHECK(told(llama, "normalization", "LayerNorm") ==
        "--normalization LayerNorm: the normalization of a llama is RMSNorm; leave it out");
  CHECK(told(gpt2, "swiglu", "true", WeightOrigin::random) ==
        "--swiglu: this gpt2 has an MLP without SwiGLU; leave it out, or give another preset or a "
        "config.json as --config_name");
  CHECK(told(gpt2, "rotary_base", "10000") ==
        "--rotary_base 10000: a gpt2 has no rotary positions; leave it out");
  const auto config = config_of(gpt2);
  const std::vector<ModelStatement> two{{"swiglu", "--swiglu", "true"},
                                        {"vocab_size", "--vocab-size", "7"}};
  const std::string both =
      error_of([&] { model::apply_statements(*config, two, WeightOrigin::stored); });
  CHECK(both.find("--swiglu: ") == 0);
  CHECK(both.find("\n--vocab-size 7: ") != std::string::npos);
}

TEST_CASE("ModelStatements: dropout and the spread of random weights are set", "[model]") {
  const std::vector<ModelStatement> rates{{"attention_dropout", "--attention_dropout", "0"},
                                          {"hidden_dropout", "--hidden_dropout", "0.25"},
                                          {"init_method_std", "--init_method_std", "0.5"}};
  const auto first = config_of(gpt2);
  const auto& of_gpt2 = dynamic_cast<const model::Gpt2Config&>(*first);
  REQUIRE(of_gpt2.attn_pdrop == 0.1F);
  model::apply_statements(*first, rates, WeightOrigin::random);
  CHECK(of_gpt2.attn_pdrop == 0);
  CHECK(of_gpt2.resid_pdrop == 0.25F);
  CHECK(of_gpt2.embd_pdrop == 0.25F);
  CHECK(of_gpt2.initializer_range == 0.5F);

  const auto second = config_of(llama);
  const ModelStatement attention{"attention_dropout", "--attention_dropout", "0.25"};
  model::apply_statements(*second, {&attention, 1}, WeightOrigin::stored);
  CHECK(dynamic_cast<const model::LlamaConfig&>(*second).attention_dropout == 0.25F);
  CHECK(told(llama, "hidden_dropout", "0") == "");
  CHECK(told(llama, "hidden_dropout", "0.1") ==
        "--hidden_dropout 0.1: a llama has no dropout outside attention; leave it out");

  const auto third = config_of(t5);
  CHECK(error_of([&] {
          model::apply_statements(*third, std::span(rates).first(2), WeightOrigin::stored);
        }) ==
        "--hidden_dropout 0.25: the model has one dropout_rate, which another option sets to 0; "
        "give both the same value");
  CHECK(told(t5, "attention_dropout", "0.3") == "");
  CHECK(told(t5, "init_method_std", "0.02", WeightOrigin::random) ==
        "--init_method_std 0.02: a t5 has no initializer_range; leave it out");
}

}  // namespace dstrain::test
