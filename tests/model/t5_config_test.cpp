#include "runtime/model/t5_config.h"

#include <nlohmann/json.hpp>

#include "runtime/model/families.h"
#include "tests/model/config_texts.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"

namespace dstrain::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using model::T5Config;
using model::T5FeedForward;

T5Config parse_t5(const std::string& text) {
  return dynamic_cast<const T5Config&>(*model::parse_model_config(text, "c"));
}

/// What parsing `{"model_type": "t5", <more>}` complains of.
std::string t5_error(const std::string& more) {
  return error_of([&] { parse_t5(R"({"model_type":"t5",)" + more + "}"); });
}

}  // namespace

TEST_CASE("T5Config: published files are read", "[model][config]") {
  const T5Config small = parse_t5(t5_small_config);
  CHECK(small.d_model == 512);
  CHECK(small.num_decoder_layers == 6);
  CHECK(small.feed_forward_proj == T5FeedForward::relu);
  CHECK(small.tie_word_embeddings);
  CHECK(small.dropout_rate == 0.1F);
  const T5Config flan = parse_t5(flan_t5_config);
  CHECK(flan.feed_forward_proj == T5FeedForward::gated_gelu);
  CHECK_FALSE(flan.tie_word_embeddings);
  CHECK(flan.num_heads == 6);
  CHECK(flan.make().pairs->start == 0);
}

TEST_CASE("T5Config: newer files have a separate key for the scaling of the head",
          "[model][config]") {
  const std::string tied = R"({"model_type":"t5","tie_word_embeddings":true)";
  CHECK(parse_t5(tied + "}").scale_decoder_outputs);
  const T5Config unscaled = parse_t5(tied + R"(,"scale_decoder_outputs":false})");
  CHECK(unscaled.tie_word_embeddings);
  CHECK_FALSE(unscaled.scale_decoder_outputs);
  const T5Config untied = parse_t5(flan_t5_config);
  CHECK_FALSE(untied.scale_decoder_outputs);
  T5Config overridden = parse_t5(tied + "}");
  overridden.apply_overrides("tie_word_embeddings=false");
  CHECK(overridden.differences(parse_t5(overridden.to_json())).empty());
  CHECK_FALSE(overridden.scale_decoder_outputs);
  CHECK_THAT(t5_error(R"("tie_word_embeddings":false,"scale_decoder_outputs":true)"),
             ContainsSubstring("only a tied head scales"));
}

TEST_CASE("T5Config: a head in the weights is the model's own unless the model scales",
          "[model][config]") {
  const bool stored = GENERATE(false, true);
  const bool scales = GENERATE(false, true);
  T5Config config = parse_t5(R"({"model_type":"t5","scale_decoder_outputs":)" +
                             std::string(scales ? "true}" : "false}"));
  config.settle([&](std::string_view name) { return stored && name == "lm_head.weight"; });
  CHECK(config.tie_word_embeddings == (scales || !stored));
  const nlohmann::json written = nlohmann::json::parse(config.to_json());
  CHECK(written.value("tie_word_embeddings", true) == config.tie_word_embeddings);
  CHECK(written.at("scale_decoder_outputs") == scales);
}

TEST_CASE("T5Config: the keys beside feed_forward_proj agree with it", "[model][config]") {
  CHECK(
      t5_error(R"("feed_forward_proj":"gated-gelu","is_gated_act":false)") ==
      "c: feed_forward_proj is \"gated-gelu\", but is_gated_act is false, which transformers goes "
      "by; make them agree, or remove is_gated_act");
  CHECK_THAT(t5_error(R"("dense_act_fn":"gelu_new")"),
             ContainsSubstring("but dense_act_fn is \"gelu_new\""));
  T5Config config = parse_t5(R"({"model_type":"t5","feed_forward_proj":"gated-gelu",)"
                             R"("dense_act_fn":"gelu_new","is_gated_act":true})");
  CHECK(nlohmann::json::parse(config.to_json()).at("dense_act_fn") == "gelu_new");
  config.apply_overrides("feed_forward_proj=relu");
  const nlohmann::json written = nlohmann::json::parse(config.to_json());
  CHECK(written.at("dense_act_fn") == "relu");
  CHECK(written.at("is_gated_act") == false);
}

TEST_CASE("T5Config: what does not fit is refused", "[model][config]") {
  CHECK_THAT(t5_error(R"("is_encoder_decoder":false)"), ContainsSubstring("only true is built"));
  CHECK_THAT(t5_error(R"("feed_forward_proj":"gated-tanh")"),
             ContainsSubstring("feed_forward_proj is \"gated-tanh\"; only"));
  CHECK_THAT(t5_error(R"("relative_attention_max_distance":16)"),
             ContainsSubstring("relative_attention_max_distance 16 is not above 16"));
  CHECK_THAT(t5_error(R"("vocab_size":10,"decoder_start_token_id":10)"),
             ContainsSubstring("decoder_start_token_id 10 is not below vocab_size 10"));
  CHECK_THAT(t5_error(R"("initializer_factor":0)"),
             ContainsSubstring("initializer_factor must be above 0"));
}

TEST_CASE("T5: units share the table of tokens and the biases", "[model]") {
  auto config = model::model_preset("t5-small");
  config->apply_overrides("num_layers=2,num_decoder_layers=3");
  const model::Model model = config->make();
  REQUIRE(model.units.size() == 2 + 3 + 5);
  using Names = std::vector<std::string>;
  const auto spec = [&](std::size_t unit) -> const model::UnitSpec& {
    return model.units[unit]->spec();
  };
  CHECK(spec(1).borrowed.empty());
  CHECK(spec(2).borrowed ==
        Names{"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"});
  CHECK(spec(3).writes[0].axis == model::Axis::source);
  CHECK(spec(4).borrowed == Names{"shared.weight"});
  CHECK(spec(6).reads == Names{"decoder1", "encoded"});
  CHECK(spec(9).borrowed == Names{"shared.weight"});
  // 6 per parameter and row of its unit's axis; attention over squares of S, T (half) and T S.
  const double width = 8 * 64;
  double encoder = 0;
  double decoder = 0;
  for (std::size_t unit = 0; unit < model.units.size(); ++unit) {
    for (const auto& parameter : spec(unit).parameters) {
      (unit < 4 ? encoder : decoder) += static_cast<double>(parameter.shape.numel());
    }
  }
  CHECK(model.flops({2, 5, 7}) ==
        Catch::Approx(2 * (6 * (7 * encoder + 5 * decoder) +
                           12 * width * (2 * 7 * 7 + 3 * 5 * 5 / 2.0 + 3 * 5 * 7))));
}

TEST_CASE("T5: memory per token is the documented formula", "[model]") {
  const bool gated = GENERATE(false, true);
  const bool drops = GENERATE(false, true);
  auto config = model::model_preset(gated ? "T0_3B" : "t5-small");
  config->apply_overrides("num_layers=1,d_model=64,d_kv=16,num_heads=8,d_ff=96");
  if (drops) config->apply_overrides("dropout_rate=0.1");
  const model::Model model = config->make();
  const std::int64_t width = 8 * 16;
  const std::int64_t mlp = 96 * ((gated ? 2 : 1) + (drops ? 1 : 0));
  const model::BatchShape shape{2, 64, 128};
  CHECK(model.units[1]->memory(shape).saved == 2 * 128 * (4 * width + 64 + mlp + 8 + 2) * 4);
  // A decoder attends twice; keys and values of the second are the source's.
  CHECK(model.units[4]->memory(shape).saved ==
        2 * 64 * (6 * width + 2 * 64 + mlp + 2 * 8 + 3) * 4 + 2 * 128 * 2 * width * 4);
}

}  // namespace dstrain::test
