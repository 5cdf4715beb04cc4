#include "runtime/model/llama_config.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "runtime/model/families.h"
#include "tests/model/config_texts.h"
#include "tests/safetensors/files.h"
#include "tests/support/catch.h"

namespace dstrain::test {
namespace {

using model::LlamaConfig;
using model::RopeScaling;
using ops::Activation;
using Document = nlohmann::ordered_json;

LlamaConfig parse_llama(const std::string& text) {
  return dynamic_cast<const LlamaConfig&>(*model::parse_model_config(text, "c"));
}

LlamaConfig llama_preset(const std::string& name) {
  return dynamic_cast<const LlamaConfig&>(*model::model_preset(name));
}

/// `{"model_type": <type>, <more>}`.
std::string config_of(const std::string& type, const std::string& more) {
  return R"({"model_type":")" + type + "\"" + (more.empty() ? "" : ",") + more + "}";
}

/// What parsing it complains of, without the file's name.
std::string llama_error(const std::string& more, const std::string& type = "llama") {
  const std::string message = error_of([&] { parse_llama(config_of(type, more)); });
  return message.starts_with("c: ") ? message.substr(3) : message;
}

std::int64_t parameters(const LlamaConfig& c) {
  const std::int64_t queries = c.num_attention_heads * c.head_dim;
  const std::int64_t keys = c.num_key_value_heads * c.head_dim;
  const std::int64_t attention =
      c.hidden_size * (2 * queries + 2 * keys) + (c.qkv_bias ? queries + 2 * keys : 0) +
      (c.output_bias ? c.hidden_size : 0) + (c.head_norms ? 2 * c.head_dim : 0);
  const std::int64_t mlp = 3 * c.hidden_size * c.intermediate_size;
  const std::int64_t tables = (c.tie_word_embeddings ? 1 : 2) * c.vocab_size * c.hidden_size;
  return tables + c.num_hidden_layers * (attention + mlp + 2 * c.hidden_size) + c.hidden_size;
}

/// With the dtype that to_json() writes by default.
std::string in_f32(const char* text) {
  auto document = Document::parse(text);
  document["torch_dtype"] = "float32";
  return document.dump(2) + "\n";
}

}  // namespace

TEST_CASE("LlamaConfig: presets have the published sizes", "[model][config]") {
  CHECK(parameters(llama_preset("llama-2-7b")) == 6'738'415'616);
  CHECK(parameters(llama_preset("llama-2-13b")) == 13'015'864'320);
  CHECK(parameters(llama_preset("llama-2-70b")) == 68'976'648'192);
  CHECK(parameters(llama_preset("llama-3-8b")) == 8'030'261'248);
  CHECK(parameters(llama_preset("llama-3.1-8b")) == 8'030'261'248);
  CHECK(parameters(llama_preset("llama-3.2-1b")) == 1'235'814'400);
  CHECK(parameters(llama_preset("llama-3.2-3b")) == 3'212'749'824);
  CHECK(parameters(llama_preset("tinyllama-1.1b")) == 1'100'048'384);
  CHECK(parameters(llama_preset("mistral-7b")) == 7'241'732'096);
  CHECK(parameters(llama_preset("qwen2-0.5b")) == 494'032'768);
  CHECK(parameters(llama_preset("qwen2.5-0.5b")) == 494'032'768);
  CHECK(parameters(llama_preset("qwen3-0.6b")) == 596'049'920);
  CHECK(parameters(llama_preset("phi-3-mini-4k")) == 3'821'079'552);
  CHECK(parameters(llama_preset("phi-3-medium-4k")) == 13'960'238'080);
  CHECK(parameters(llama_preset("phi-4")) == 14'659'507'200);
  CHECK(parameters(llama_preset("phi-4-mini")) == 3'836'021'760);
}

TEST_CASE("LlamaConfig: presets are the published configurations", "[model][config]") {
  const auto same = [](const char* name, const char* text) {
    return llama_preset(name).differences(parse_llama(text)).empty();
  };
  CHECK(same("llama-2-7b", llama_2_config));
  CHECK(same("llama-3.1-8b", llama_3_1_config));
  CHECK(same("mistral-7b", mistral_config));
  CHECK(same("qwen2-0.5b", qwen2_config));
  CHECK(same("qwen3-0.6b", qwen3_config));
  CHECK(same("phi-3-mini-4k", phi_3_config));
  CHECK(same("phi-4-mini", phi_4_mini_config));
}

TEST_CASE("LlamaConfig: published files are written as they were read", "[model][config]") {
  for (const char* const text : {llama_2_config, llama_3_1_config, mistral_config, qwen2_config,
                                 qwen3_config, phi_3_config, phi_4_mini_config}) {
    CHECK(parse_llama(text).to_json() == in_f32(text));
  }
}

TEST_CASE("LlamaConfig: differences between the families are read", "[model][config]") {
  const LlamaConfig llama = parse_llama(llama_3_1_config);
  CHECK(llama.num_key_value_heads == 8);
  CHECK(llama.head_dim == 128);
  CHECK(llama.rope_theta == 500000);
  CHECK((llama.rope_scaling == RopeScaling{.kind = RopeScaling::Kind::llama3,
                                           .factor = 8,
                                           .original_positions = 8192,
                                           .low_freq_factor = 1,
                                           .high_freq_factor = 4}));
  CHECK_FALSE(llama.qkv_bias);
  CHECK(llama.window(31) == 0);
  const LlamaConfig mistral = parse_llama(mistral_config);
  CHECK(mistral.window(0) == 4096);
  CHECK(parse_llama(config_of("mistral", R"("sliding_window":null)")).window(0) == 0);
  const LlamaConfig qwen2 = parse_llama(qwen2_config);
  CHECK(qwen2.qkv_bias);
  CHECK_FALSE(qwen2.output_bias);
  CHECK_FALSE(qwen2.head_norms);
  CHECK(qwen2.head_dim == 64);
  CHECK(qwen2.window(23) == 0);
  const LlamaConfig qwen3 = parse_llama(qwen3_config);
  CHECK(qwen3.head_norms);
  CHECK(qwen3.head_dim == 128);
  CHECK_FALSE(qwen3.qkv_bias);
}

TEST_CASE("LlamaConfig: absent keys have the defaults of Hugging Face", "[model][config]") {
  const LlamaConfig llama = parse_llama(config_of("llama", ""));
  CHECK(llama.max_position_embeddings == 2048);
  CHECK(llama.rms_norm_eps == 1e-6F);
  CHECK(llama.num_key_value_heads == 32);
  CHECK(parse_llama(config_of("llama", R"("num_attention_heads":16)")).num_key_value_heads == 16);
  CHECK(parse_llama(config_of("llama", R"("num_attention_heads":16)")).head_dim == 256);
  const LlamaConfig mistral = parse_llama(config_of("mistral", R"("num_attention_heads":16)"));
  CHECK(mistral.num_key_value_heads == 8);
  CHECK(mistral.sliding_window == 4096);
  CHECK(parse_llama(config_of("mistral", R"("num_key_value_heads":null)")).num_key_value_heads ==
        32);
  CHECK(parse_llama(config_of("qwen3", R"("hidden_size":1024,"head_dim":null)")).head_dim == 128);
  CHECK(parse_llama(config_of("qwen2", R"("hidden_size":1024)")).head_dim == 32);
}

TEST_CASE("LlamaConfig: biases and activations are read", "[model][config]") {
  const LlamaConfig config = parse_llama(
      config_of("llama", R"("attention_bias":true,"mlp_bias":true,"hidden_act":"gelu_new")"));
  CHECK(config.qkv_bias);
  CHECK(config.output_bias);
  CHECK(config.mlp_bias);
  CHECK(config.hidden_act == Activation::gelu_tanh);
  const auto document = Document::parse(config.to_json());
  CHECK(document["hidden_act"] == "gelu_new");
  CHECK(document["attention_bias"] == true);
  CHECK(parse_llama(config_of("qwen3", R"("attention_bias":true)")).output_bias);
}

TEST_CASE("LlamaConfig: layers with a window", "[model][config]") {
  const std::string windows = R"("num_hidden_layers":3,"use_sliding_window":true,)"
                              R"("sliding_window":8,"max_window_layers":2)";
  const LlamaConfig config = parse_llama(config_of("qwen2", windows));
  CHECK(config.window(1) == 0);
  CHECK(config.window(2) == 8);
  const std::string listed =
      windows + R"(,"layer_types":["full_attention","sliding_attention","sliding_attention"])";
  LlamaConfig other = parse_llama(config_of("qwen2", listed));
  CHECK(other.window(0) == 0);
  CHECK(other.window(1) == 8);
  CHECK(Document::parse(other.to_json()).contains("layer_types"));
  other.apply_overrides("num_hidden_layers=4");
  CHECK_FALSE(Document::parse(other.to_json()).contains("layer_types"));
  CHECK(parse_llama(other.to_json()).window(1) == 8);
  CHECK_THAT(
      llama_error(windows + R"(,"layer_types":["sliding_attention","full_attention","x"])",
                  "qwen2"),
      Catch::Matchers::StartsWith("layer_types: must be of 3 layers, \"full_attention\" and then"));
  CHECK_THAT(llama_error(R"("num_hidden_layers":9000000000000000,"layer_types":[])", "qwen3"),
             Catch::Matchers::StartsWith("layer_types: "));
}

TEST_CASE("LlamaConfig: scaled rotations are read", "[model][config]") {
  const auto scaling = [](const std::string& json) {
    return parse_llama(config_of("llama", json)).rope_scaling;
  };
  CHECK((scaling(R"("rope_scaling":{"type":"linear","factor":2})") ==
         RopeScaling{.kind = RopeScaling::Kind::linear, .factor = 2}));
  CHECK(
      (scaling(R"("rope_parameters":{"rope_type":"default","rope_theta":5.0})") == RopeScaling{}));
  CHECK(parse_llama(config_of("llama", R"("rope_parameters":{"rope_theta":5.0})")).rope_theta == 5);
  const RopeScaling yarn = scaling(
      R"("rope_scaling":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":64})");
  CHECK(yarn.kind == RopeScaling::Kind::yarn);
  CHECK(yarn.beta_fast == 32);
  CHECK(yarn.truncate);
  CHECK(yarn.attention_factor == 0.1F * std::log(4.0F) + 1);
  CHECK(scaling(R"("original_max_position_embeddings":64,"rope_scaling":{"rope_type":"yarn",)"
                R"("factor":4.0,"mscale":1.0,"mscale_all_dim":1.0,"truncate":false})")
            .attention_factor == 1);
}

TEST_CASE("LlamaConfig: what Phi-3 has of its own is read", "[model][config]") {
  const LlamaConfig mini = parse_llama(phi_3_config);
  CHECK(mini.packed_projections);
  CHECK(mini.window(0) == 2047);
  CHECK(mini.rotary_dims() == 96);
  CHECK(mini.rope_scaling.kind == RopeScaling::Kind::none);
  const LlamaConfig other = parse_llama(phi_4_mini_config);
  CHECK(other.head_dim == 128);
  CHECK(other.rotary_dims() == 96);
  CHECK(other.rope_scaling.kind == RopeScaling::Kind::longrope);
  CHECK(other.rope_scaling.original_positions == 4096);
  CHECK(other.rope_scaling.long_factors[47] == 47.77F);
  const LlamaConfig bare = parse_llama(config_of("phi3", R"("resid_pdrop":0.1,"embd_pdrop":0.2)"));
  CHECK(parameters(bare) == 3'821'079'552);
  CHECK(bare.window(0) == 0);
  CHECK(bare.resid_pdrop == 0.1F);
  CHECK(bare.embd_pdrop == 0.2F);
  CHECK(Document::parse(bare.to_json())["embd_pdrop"] == 0.2);
  CHECK(parse_llama(config_of("phi3", R"("hidden_size":40,"num_attention_heads":4,)"
                                      R"("partial_rotary_factor":0.6)"))
            .rotary_dims() == 6);
  CHECK(parse_llama(config_of("phi3", R"("partial_rotary_factor":1.0,)"
                                      R"("rope_parameters":{"partial_rotary_factor":0.5})"))
            .rotary_dims() == 48);
}

TEST_CASE("LlamaConfig: longrope uses other frequencies for long sequences", "[model][config]") {
  const std::string sizes = R"("num_attention_heads":4,"hidden_size":16,)"
                            R"("max_position_embeddings":64,"original_max_position_embeddings":16)";
  const auto rotary = [&](const std::string& more) {
    const LlamaConfig c = parse_llama(config_of(
        "phi3", sizes + R"(,"rope_scaling":{"type":"su","short_factor":[1,2],"long_factor":[4,8])" +
                    more + "}"));
    const model::RotarySizes rotary_sizes{c.rotary_dims(), c.max_position_embeddings};
    return model::make_rotary(rotary_sizes, c.rope_theta, c.rope_scaling);
  };
  const ops::Rotary follows = rotary("");
  CHECK(follows.dims == 4);
  CHECK(follows.frequencies_of(16)[1] == 1.0F / (2 * std::sqrt(10000.0F)));
  CHECK(follows.frequencies_of(17)[0] == 0.25F);
  CHECK(follows.magnitude == Catch::Approx(std::sqrt(1 + std::log(4.0) / std::log(16.0))));
  CHECK(rotary(R"(,"factor":2)").magnitude == Catch::Approx(std::sqrt(1.25)));
  CHECK(rotary(R"(,"factor":0.5)").magnitude == 1);
  CHECK(rotary(R"(,"factor":2,"attention_factor":3)").magnitude == 3);
}

TEST_CASE("LlamaConfig: rotations that Phi-3 lacks are refused", "[model][config]") {
  const auto refusal = [](const std::string& more) {
    return llama_error(R"("num_attention_heads":4,"hidden_size":16,)" + more, "phi3");
  };
  CHECK(refusal(R"("rope_scaling":{"type":"yarn","factor":2})") ==
        "rope_scaling.type is \"yarn\"; only \"default\", \"longrope\" and \"su\" are built");
  CHECK(refusal(R"("rope_scaling":{"type":"su","short_factor":[1,2]})") ==
        "rope_scaling has no long_factor");
  CHECK(refusal(R"("rope_scaling":{"type":"su","short_factor":[1,0]})") ==
        "rope_scaling.short_factor must be up to 128 numbers above 0, got [1,0]");
  CHECK(refusal(R"("rope_scaling":{"type":"su","short_factor":[1,2],"long_factor":[]})") ==
        "model sizes: rope_scaling.long_factor has 0 numbers for 2 rotated pairs");
  CHECK(refusal(R"("rope_parameters":{"original_max_position_embeddings":8})") ==
        "rope_parameters.original_max_position_embeddings must be 4096, as "
        "original_max_position_embeddings is, got 8");
  CHECK(refusal(R"("original_max_position_embeddings":1,"rope_scaling":{"type":"longrope",)"
                R"("short_factor":[1,2],"long_factor":[1,2]})") ==
        "model sizes: original_max_position_embeddings must be above 1 for longrope");
  CHECK(refusal(R"("partial_rotary_factor":0.75)") ==
        "model sizes: partial_rotary_factor 0.75: positions rotate pairs of features, not 3 of 4");
  CHECK(refusal(R"("partial_rotary_factor":1.5)") ==
        "model sizes: partial_rotary_factor 1.5: positions rotate pairs of features, not 6 of 4");
  CHECK(refusal(R"("attention_bias":true)") == "attention_bias is true; only false is built");
}

TEST_CASE("LlamaConfig: changed values of Phi-3 are written where they are read",
          "[model][config]") {
  LlamaConfig config = parse_llama(phi_4_mini_config);
  config.apply_overrides("original_max_position_embeddings=8,vocab_size=1000");
  const LlamaConfig again = parse_llama(config.to_json());
  CHECK(again.differences(config).empty());
  CHECK(again.rope_scaling == config.rope_scaling);
  CHECK(Document::parse(config.to_json())["pad_token_id"] == nullptr);
  LlamaConfig newer = parse_llama(config_of(
      "phi3", R"("rope_parameters":{"partial_rotary_factor":0.5,"rope_type":"default"})"));
  newer.apply_overrides("partial_rotary_factor=1,vocab_size=1000");
  CHECK(parse_llama(newer.to_json()).rotary_dims() == 96);
  CHECK(Document::parse(newer.to_json()).contains("pad_token_id"));  // else it is 32000
  newer.source.clear();
  newer.rope_scaling = config.rope_scaling;
  const LlamaConfig whole = parse_llama(newer.to_json());
  CHECK(whole.rope_scaling == config.rope_scaling);
  CHECK(whole.to_json() == newer.to_json());
}

TEST_CASE("LlamaConfig: what would change the numbers is refused by name", "[model][config]") {
  CHECK(llama_error(R"("hidden_act":"tanh")") ==
        "hidden_act is \"tanh\"; only \"gelu_new\", \"gelu_pytorch_tanh\", \"gelu_fast\", "
        "\"gelu\", \"gelu_python\", \"quick_gelu\", \"silu\", \"swish\" and \"relu\" are built");
  CHECK(llama_error(R"("rope_scaling":{"rope_type":"dynamic","factor":2.0})") ==
        "rope_scaling.rope_type is \"dynamic\"; only \"default\", \"linear\", \"llama3\", "
        "\"yarn\" and \"longrope\" are built");
  CHECK(llama_error(R"("rope_scaling":{"rope_type":"linear"})") == "rope_scaling has no factor");
  CHECK(llama_error(R"("rope_scaling":{"rope_type":"llama3","factor":8.0})") ==
        "rope_scaling has no original_max_position_embeddings");
  CHECK(llama_error(R"("rope_scaling":{"rope_type":"linear","factor":-1})") ==
        "rope_scaling.factor must be a number above 0, got -1");
  CHECK(llama_error(R"("rope_scaling":{"factor":0})") ==
        "rope_scaling.factor must be a number above 0, got 0");
  CHECK(llama_error(R"("rope_scaling":{"rope_type":"default","factor":-2.0})") ==
        "rope_scaling.factor must be a number above 0, got -2.0");
  CHECK(llama_error(R"("rope_scaling":2)") == "rope_scaling must be null or an object, got 2");
  CHECK_THAT(llama_error(R"("rope_parameters":{"full_attention":{"rope_type":"default"}})"),
             Catch::Matchers::StartsWith(
                 "rope_parameters.full_attention: only the same rotations for all layers"));
  CHECK(llama_error(R"("partial_rotary_factor":0.5)") ==
        "partial_rotary_factor is 0.5; only 1.0 is built");
  CHECK(llama_error(R"("quantization_config":{"bits":4})") ==
        "quantization_config: quantized weights cannot be trained");
}

TEST_CASE("LlamaConfig: heads that are too large for rotations are refused", "[model][config]") {
  CHECK(llama_error(R"("head_dim":512)") ==
        "model sizes: head_dim 512: positions rotate 512 features of a head; at most 256 are "
        "supported");
  CHECK_THAT(llama_error(R"("hidden_size":4096,"num_attention_heads":8)", "mistral"),
             Catch::Matchers::StartsWith("model sizes: head_dim 512: positions rotate"));
  // Fewer may turn of a larger head, but for GPUs.
  const std::string large = R"("head_dim":512,"partial_rotary_factor":0.5)";
  const LlamaConfig config = parse_llama(config_of("phi3", large));
  CHECK(config.make().units.size() > 2);
  CHECK(error_of([&] { static_cast<void>(config.make({.device = DeviceKind::cuda})); }) ==
        "the model's head_dim is 512: --device cuda has attention for heads of up to 256 features; "
        "choose smaller heads, or --device cpu");
}

TEST_CASE("LlamaConfig: two places that disagree on rotations are refused", "[model][config]") {
  // A file of transformers 5 to which the snippet of the usual model card was added.
  CHECK(llama_error(R"("rope_parameters":{"rope_type":"default","rope_theta":1e6},)"
                    R"("rope_scaling":{"rope_type":"yarn","factor":4.0,)"
                    R"("original_max_position_embeddings":64})",
                    "qwen2") ==
        "rope_parameters is {\"rope_theta\":1000000.0,\"rope_type\":\"default\"} and rope_scaling "
        "{\"factor\":4.0,\"original_max_position_embeddings\":64,\"rope_type\":\"yarn\"}: "
        "transformers reads rope_scaling alone, without the other's rope_theta; put all of it into "
        "one of them and remove the other");
  CHECK(llama_error(R"("rope_parameters":{"rope_theta":5.0},"rope_theta":6.0)") ==
        "rope_theta is 6, but rope_parameters.rope_theta is 5; keep one");
  const std::string linear = R"({"rope_type":"linear","factor":2.0)";
  CHECK(llama_error(R"("rope_parameters":)" + linear + R"(,"rope_theta":5.0},"rope_scaling":)" +
                    linear + "}") ==
        "rope_theta is 5 in rope_parameters but 10000 in rope_scaling, which transformers reads "
        "instead; put all settings into one of them and remove the other");
  CHECK(llama_error(R"("rope_scaling":{"rope_type":"linear","type":"yarn","factor":2.0})") ==
        "rope_scaling.rope_type is \"linear\", but rope_scaling.type is \"yarn\"; keep one");
  CHECK(llama_error(R"("original_max_position_embeddings":64,"rope_scaling":{"rope_type":"yarn",)"
                    R"("factor":4.0,"original_max_position_embeddings":65})") ==
        "rope_scaling.original_max_position_embeddings must be 64, as "
        "original_max_position_embeddings beside it is, got 65");
  CHECK(llama_error(R"("partial_rotary_factor":0.25,"rope_parameters":)"
                    R"({"partial_rotary_factor":0.5})",
                    "phi3") ==
        "partial_rotary_factor is 0.25, but rope_parameters.partial_rotary_factor is 0.5; keep "
        "one");
}

TEST_CASE("LlamaConfig: only one of two places that agree on rotations is written",
          "[model][config]") {
  const std::string yarn =
      R"("rope_type":"yarn","factor":4.0,"original_max_position_embeddings":64)";
  const LlamaConfig config = parse_llama(
      config_of("qwen2", R"("rope_parameters":{"rope_theta":1e6,)" + yarn +
                             R"(},"rope_theta":1e6,"rope_scaling":{"type":"yarn",)" + yarn + "}"));
  CHECK(config.rope_theta == 1e6F);
  const Document written = Document::parse(config.to_json());
  CHECK_FALSE(written.contains("rope_parameters"));
  CHECK(written["rope_scaling"]["factor"] == 4.0);
  CHECK(written["rope_theta"] == 1e6);
  CHECK(parse_llama(config.to_json()).differences(config).empty());
  CHECK(parse_llama(config.to_json()).rope_theta == 1e6F);
}

TEST_CASE("LlamaConfig: bad values are refused with their key", "[model][config]") {
  CHECK(llama_error(R"("hidden_size":"64")") == "hidden_size must be a whole number, got \"64\"");
  CHECK(llama_error(R"("tie_word_embeddings":1)") ==
        "tie_word_embeddings must be true or false, got 1");
  CHECK(llama_error(R"("num_attention_heads":0)") ==
        "model sizes: num_attention_heads must be 1..16384, got 0");
  CHECK(llama_error(R"("num_attention_heads":6,"hidden_size":96,"num_key_value_heads":4)") ==
        "model sizes: num_attention_heads 6 is not a multiple of num_key_value_heads 4");
  CHECK(llama_error(R"("num_attention_heads":5,"hidden_size":64)") ==
        "model sizes: hidden_size 64 is not a multiple of num_attention_heads 5");
  CHECK(llama_error(R"("head_dim":63)") ==
        "model sizes: head_dim 63 is odd: positions rotate pairs of features");
  CHECK(llama_error(R"("rope_theta":0)") == "model sizes: rope_theta must be above 0");
}

TEST_CASE("LlamaConfig: overrides change what they name", "[model][config]") {
  LlamaConfig config = llama_preset("llama-2-7b");
  config.apply_overrides("hidden_size=64,num_attention_heads=4,tie_word_embeddings=true");
  CHECK(config.head_dim == 16);
  CHECK(config.num_key_value_heads == 4);
  CHECK(config.tie_word_embeddings);
  config.apply_overrides("num_key_value_heads=2,hidden_act=relu,rope_theta=100");
  config.apply_overrides("num_attention_heads=8");
  CHECK(config.num_key_value_heads == 2);
  CHECK(config.head_dim == 8);
  CHECK(config.hidden_act == Activation::relu);
  CHECK(parse_llama(config.to_json()).differences(config).empty());
  CHECK(error_of([&] { config.apply_overrides("hidden_act=x"); }) ==
        "config override 'hidden_act=x': hidden_act needs one of \"gelu_new\", "
        "\"gelu_pytorch_tanh\", \"gelu_fast\", \"gelu\", \"gelu_python\", \"quick_gelu\", "
        "\"silu\", \"swish\" and \"relu\"");
  CHECK(error_of([&] { config.apply_overrides("mlp_bias=1"); }) ==
        "config override 'mlp_bias=1': mlp_bias needs true or false");
  CHECK_THAT(
      error_of([&] { config.apply_overrides("n_layer=2"); }),
      Catch::Matchers::ContainsSubstring("unknown key; known are vocab_size, hidden_size, "));
}

TEST_CASE("LlamaConfig: changed values are written where they were read", "[model][config]") {
  LlamaConfig config = parse_llama(llama_3_1_config);
  config.apply_overrides("num_hidden_layers=2,vocab_size=1000,rope_theta=100");
  auto expected = Document::parse(in_f32(llama_3_1_config));
  expected["num_hidden_layers"] = 2;
  expected["vocab_size"] = 1000;
  expected["rope_theta"] = 100.0;
  expected["bos_token_id"] = nullptr;
  expected["eos_token_id"] = nullptr;
  CHECK(config.to_json() == expected.dump(2) + "\n");

  LlamaConfig newer = parse_llama(config_of(
      "llama", R"("rope_parameters":{"rope_type":"default","rope_theta":5.0},"dtype":"float16")"));
  newer.apply_overrides("rope_theta=7");
  CHECK(Document::parse(newer.to_json())["rope_parameters"]["rope_theta"] == 7.0);
  CHECK(parse_llama(newer.to_json()).rope_theta == 7);
}

TEST_CASE("LlamaConfig: a configuration that was not read from a file is written whole",
          "[model][config]") {
  const model::ModelFamily& family = *GENERATE(&model::llama_family(), &model::mistral_family(),
                                               &model::qwen2_family(), &model::qwen3_family());
  const auto config = family.defaults();
  config->read("{}", "c");
  config->source.clear();
  auto& llama = dynamic_cast<LlamaConfig&>(*config);
  llama.rope_scaling = {.kind = RopeScaling::Kind::yarn,
                        .factor = 3,
                        .original_positions = 7,
                        .attention_factor = 1.5F,
                        .truncate = false};
  const LlamaConfig again = parse_llama(config->to_json());
  CHECK(again.differences(llama).empty());
  CHECK(again.rope_scaling == llama.rope_scaling);
  CHECK(again.to_json() == config->to_json());
}

TEST_CASE("LlamaConfig: two models differ by what they compute", "[model][config]") {
  const LlamaConfig before = parse_llama(llama_3_1_config);
  LlamaConfig after = before;
  after.apply_overrides("attention_dropout=0.5,initializer_range=1");
  CHECK(before.differences(after).empty());
  after.rope_scaling.factor = 4;
  after.tie_word_embeddings = true;
  const auto found = before.differences(after);
  REQUIRE(found.size() == 2);
  CHECK(found[0].key == "tie_word_embeddings");
  CHECK(found[0].after == "true");
  CHECK(found[1].key == "rope_scaling");
  CHECK_THAT(found[1].before, Catch::Matchers::ContainsSubstring("\"factor\":8.0"));
  const auto family = before.differences(parse_llama(mistral_config));
  REQUIRE(family.size() == 1);
  CHECK(family[0].key == "model_type");
  CHECK(family[0].before == "llama");
  CHECK(family[0].after == "mistral");
}

TEST_CASE("LlamaConfig: names of parameters are those of the files", "[model][config]") {
  const model::HfNames untied = parse_llama(llama_2_config).hf_names();
  CHECK(untied.prefix == "model.");
  CHECK(untied.tied.empty());
  REQUIRE(untied.buffers.size() == 1);
  CHECK(untied.buffers[0] == ".rotary_emb.inv_freq");
  const model::HfNames tied = parse_llama(qwen2_config).hf_names();
  REQUIRE(tied.tied.size() == 1);
  CHECK(tied.tied[0].name == "lm_head.weight");
  CHECK(tied.tied[0].parameter == "embed_tokens.weight");
}

}  // namespace dstrain::test
