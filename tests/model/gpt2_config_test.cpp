#include "runtime/model/gpt2_config.h"

#include <nlohmann/json.hpp>

#include "runtime/model/families.h"
#include "tests/safetensors/files.h"
#include "tests/support/catch.h"

namespace dstrain::test {
namespace {

using model::Gpt2Config;

Gpt2Config parse_gpt2(const std::string& text) {
  return dynamic_cast<const Gpt2Config&>(*model::parse_model_config(text, "c"));
}

Gpt2Config gpt2_preset(const std::string& name) {
  return dynamic_cast<const Gpt2Config&>(*model::model_preset(name));
}

/// What parsing `{"model_type": "gpt2", <more>}` complains of, without the file's name.
std::string parse_error(const std::string& more) {
  const std::string message =
      error_of([&] { parse_gpt2(R"({"model_type":"gpt2",)" + more + "}"); });
  return message.starts_with("c: ") ? message.substr(3) : message;
}

std::string override_error(const std::string& overrides) {
  Gpt2Config config;
  return error_of([&] {
    config.apply_overrides(overrides);
    config.check();
  });
}

std::int64_t parameters(const Gpt2Config& c) {
  const std::int64_t block = 4 * c.n_embd + 4 * c.n_embd * c.n_embd + 4 * c.n_embd +
                             2 * c.n_embd * c.n_inner + c.n_inner + c.n_embd;
  return (c.vocab_size + c.n_positions) * c.n_embd + c.n_layer * block + 2 * c.n_embd;
}

}  // namespace

TEST_CASE("Gpt2Config: presets have the published sizes", "[model][config]") {
  CHECK(parameters(gpt2_preset("gpt2")) == 124'439'808);
  CHECK(parameters(gpt2_preset("gpt2-medium")) == 354'823'168);
  CHECK(parameters(gpt2_preset("gpt2-large")) == 774'030'080);
  CHECK(parameters(gpt2_preset("gpt2-xl")) == 1'557'611'200);
  CHECK(gpt2_preset("gpt2").embd_pdrop == 0);
}

TEST_CASE("Gpt2Config: absent keys have the defaults of Hugging Face", "[model][config]") {
  const Gpt2Config config = parse_gpt2(R"({"model_type": "gpt2"})");
  CHECK(parameters(config) == 124'439'808);
  CHECK(config.embd_pdrop == 0.1F);
  CHECK(config.attn_pdrop == 0.1F);
  CHECK(config.resid_pdrop == 0.1F);
  CHECK(config.layer_norm_epsilon == 1e-5F);
}

TEST_CASE("Gpt2Config: keys and their aliases are read", "[model][config]") {
  const Gpt2Config config = parse_gpt2(
      R"({"model_type": "gpt2", "n_embd": 64, "n_inner": null, "num_hidden_layers": 3,
          "n_positions": 128, "n_head": 4, "vocab_size": 300, "resid_pdrop": 0, "attn_pdrop": 0.25,
          "activation_function": "gelu_pytorch_tanh", "summary_type": "cls_index"})");
  CHECK(config.n_embd == 64);
  CHECK(config.n_inner == 256);
  CHECK(config.n_layer == 3);
  CHECK(config.n_positions == 128);
  CHECK(config.resid_pdrop == 0);
  CHECK(config.attn_pdrop == 0.25F);
}

TEST_CASE("Gpt2Config: only one of two names of a size is written", "[model][config]") {
  const Gpt2Config config =
      parse_gpt2(R"({"model_type":"gpt2","n_layer":3,"num_hidden_layers":3})");
  const auto written = nlohmann::json::parse(config.to_json());
  CHECK(written.at("n_layer") == 3);
  CHECK_FALSE(written.contains("num_hidden_layers"));
}

TEST_CASE("Gpt2Config: heads that are too large for a device are refused", "[model][config]") {
  Gpt2Config config = gpt2_preset("gpt2");
  config.apply_overrides("n_head=2");
  CHECK(config.make().units.size() == 14);
  CHECK(error_of([&] { static_cast<void>(config.make({.device = DeviceKind::cuda})); }) ==
        "the model's n_embd / n_head is 384: --device cuda has attention for heads of up to 256 "
        "features; choose smaller heads, or --device cpu");
}

TEST_CASE("Gpt2Config: what would change the numbers is refused", "[model][config]") {
  CHECK_THAT(parse_error(R"("activation_function":"mish")"),
             Catch::Matchers::StartsWith("activation_function is \"mish\"; only \"gelu_new\", "));
  CHECK(parse_error(R"("tie_word_embeddings":1)") ==
        "tie_word_embeddings must be true or false, got 1");
  CHECK(parse_error(R"("add_cross_attention":true)") ==
        "add_cross_attention is true; only false is built");
  CHECK(parse_error(R"("quantization_config":{"bits":4})") ==
        "quantization_config: quantized weights cannot be trained");
}

TEST_CASE("Gpt2Config: bad values are refused with their key", "[model][config]") {
  CHECK(parse_error(R"("n_embd":"64")") == "n_embd must be a whole number, got \"64\"");
  CHECK(parse_error(R"("n_embd":64.5)") == "n_embd must be a whole number, got 64.5");
  CHECK(parse_error(R"("n_layer":18446744073709551615)") ==
        "n_layer must be a whole number, got 18446744073709551615");
  CHECK(parse_error(R"("n_layer":0)") == "model sizes: n_layer must be 1..16384, got 0");
  CHECK(parse_error(R"("n_embd":1000000000000)") ==
        "model sizes: n_embd must be 1..262144, got 1000000000000");
  CHECK(parse_error(R"("n_head":5,"n_embd":64)") ==
        "model sizes: n_embd 64 is not a multiple of n_head 5");
  CHECK(parse_error(R"("attn_pdrop":1)") == "model sizes: attn_pdrop must be in [0, 1), got 1");
  CHECK(parse_error(R"("attn_pdrop":"0")") == "attn_pdrop must be a number, got \"0\"");
  CHECK(parse_error(R"("n_embd":64,"hidden_size":32)") == "n_embd is 64, but hidden_size is 32");
  CHECK(parse_error(R"("n_embd":64,"n_embd":64)") == "the key 'n_embd' appears twice");
  CHECK(parse_error(R"("x":{"y":1,"z":{"y":1},"y":2})") == "the key 'y' appears twice");
  CHECK(parse_error(R"("x":)" + std::string(100'000, '[')) == "nested deeper than 32");
  CHECK(error_of([] { parse_gpt2("[]"); }) == "c: not a JSON object");
  CHECK_THAT(error_of([] { parse_gpt2("{\"model_type\""); }),
             Catch::Matchers::StartsWith("c: ") && Catch::Matchers::ContainsSubstring("line 1"));
}

TEST_CASE("Gpt2Config: equal keys in different objects are fine", "[model][config]") {
  CHECK(parse_error(R"("x":{"a":1},"y":{"a":2},"z":[{"a":1},{"a":2}])") == "");
}

TEST_CASE("Gpt2Config: overrides change what they name", "[model][config]") {
  Gpt2Config config;
  config.apply_overrides("n_layer=2, n_embd = 64,n_head=4,resid_pdrop=0.5");
  CHECK(config.n_layer == 2);
  CHECK(config.n_embd == 64);
  CHECK(config.n_inner == 256);
  CHECK(config.resid_pdrop == 0.5F);
  config.apply_overrides("n_inner=100");
  config.apply_overrides("n_embd=32");
  CHECK(config.n_inner == 100);
  config.apply_overrides("");
  config.apply_overrides("n_embd=25,n_inner=100");
  config.apply_overrides("n_embd=50,n_inner=100");
  CHECK(config.n_inner == 100);
  config.apply_overrides("hidden_size=32,num_hidden_layers=3,max_position_embeddings=8");
  CHECK(config.n_embd == 32);
  CHECK(config.n_layer == 3);
  CHECK(config.n_positions == 8);
}

TEST_CASE("Gpt2Config: bad overrides are refused", "[model][config]") {
  CHECK(override_error("n_layers=2") ==
        "config override 'n_layers=2': unknown key; did you mean n_layer?");
  CHECK(override_error("num_hidden_layer=2") ==
        "config override 'num_hidden_layer=2': unknown key; did you mean num_hidden_layers?");
  CHECK(override_error("depth=2") ==
        "config override 'depth=2': unknown key; known are vocab_size, n_positions, n_embd, "
        "n_layer, n_head, n_inner, layer_norm_epsilon, initializer_range, embd_pdrop, attn_pdrop, "
        "resid_pdrop, activation_function, tie_word_embeddings, scale_attn_weights, "
        "scale_attn_by_inverse_layer_idx");
  CHECK(override_error("n_layer=2.5") ==
        "config override 'n_layer=2.5': n_layer needs a whole number");
  CHECK(override_error("n_layer") == "config override 'n_layer': n_layer needs a whole number");
  CHECK(override_error("n_layer=99999999999999999999") ==
        "config override 'n_layer=99999999999999999999': n_layer needs a whole number");
  CHECK(override_error("attn_pdrop=x") ==
        "config override 'attn_pdrop=x': attn_pdrop needs a number");
  CHECK(override_error("attn_pdrop=nan") ==
        "config overrides 'attn_pdrop=nan': attn_pdrop must be in [0, 1), got nan");
  CHECK_THAT(override_error("n_layer=2,"),
             Catch::Matchers::StartsWith("config override '': unknown key"));
  CHECK(override_error("n_layer=-1,n_head=0") ==
        "config overrides 'n_layer=-1,n_head=0': n_layer must be 1..16384, got -1; "
        "n_head must be 1..16384, got 0");
  CHECK(override_error("n_layer=2,num_hidden_layers=3") ==
        "config overrides 'n_layer=2,num_hidden_layers=3': n_layer is set twice; keep one of them");
  CHECK(override_error("n_head=7") == "model sizes: n_embd 768 is not a multiple of n_head 7");
}

TEST_CASE("Gpt2Config: what is written is read back", "[model][config]") {
  Gpt2Config config = gpt2_preset("gpt2-medium");
  config.apply_overrides("vocab_size=300,n_inner=100,embd_pdrop=0.1,n_layer=3");
  const std::string text = config.to_json();
  const Gpt2Config again = parse_gpt2(text);
  CHECK(again.to_json() == text);
  CHECK(again.n_inner == 100);
  CHECK(again.attn_pdrop == 0);
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("\"layer_norm_epsilon\": 1e-05") &&
                       Catch::Matchers::ContainsSubstring("\"embd_pdrop\": 0.1,") &&
                       Catch::Matchers::ContainsSubstring("\"attn_pdrop\": 0.0,") &&
                       Catch::Matchers::ContainsSubstring("\"eos_token_id\": null"));
  CHECK_THAT(Gpt2Config().to_json(),
             Catch::Matchers::ContainsSubstring("\"n_inner\": null") &&
                 Catch::Matchers::ContainsSubstring("\"eos_token_id\": 50256"));
}

TEST_CASE("Gpt2Config: n_ctx is ignored as in transformers", "[model][config]") {
  const Gpt2Config config = parse_gpt2(R"({"model_type":"gpt2","n_ctx":64,"n_positions":32})");
  CHECK(config.n_positions == 32);
  CHECK(nlohmann::json::parse(config.to_json())["n_ctx"] == 64);
  CHECK(parse_gpt2(R"({"model_type":"gpt2","n_ctx":64})").n_positions == 1024);
}

TEST_CASE("Gpt2Config: what training does not change is written as read", "[model][config]") {
  const std::string source = R"({"model_type":"gpt2","architectures":["GPT2LMHeadModel"],
      "vocab_size":300,"bos_token_id":1,"eos_token_id":[2,299],"pad_token_id":0,
      "task_specific_params":{"text-generation":{"do_sample":true,"max_length":50}},
      "n_embd":64,"n_head":4,"n_inner":256,"n_layer":2,"n_positions":32,"initializer_range":0.02,
      "activation_function":"gelu_pytorch_tanh","layer_norm_epsilon":1e-05,"embd_pdrop":0.1,
      "attn_pdrop":0.1,"resid_pdrop":0.1,"transformers_version":"4.57.0","dtype":"float16",
      "torch_dtype":"float16","own_key":[1,null,2.5]})";
  const auto read = nlohmann::ordered_json::parse(source);
  const auto written = nlohmann::ordered_json::parse(parse_gpt2(source).to_json(DType::bf16));
  auto expected = read;
  expected["dtype"] = "bfloat16";
  expected.erase("torch_dtype");  // an older name of the same
  CHECK(written.dump(2) == expected.dump(2));

  Gpt2Config config = parse_gpt2(source);
  config.apply_overrides("vocab_size=256,n_embd=32,n_layer=3,n_positions=16,attn_pdrop=0");
  const auto changed = nlohmann::ordered_json::parse(config.to_json());
  expected = read;
  expected["dtype"] = "float32";
  expected.erase("torch_dtype");
  expected["vocab_size"] = 256;
  expected["eos_token_id"] = nlohmann::ordered_json::array({2});  // 299 is no more
  expected["n_embd"] = 32;
  expected["n_inner"] = nullptr;
  expected["n_layer"] = 3;
  expected["n_positions"] = 16;
  expected["attn_pdrop"] = 0.0;
  CHECK(changed.dump(2) == expected.dump(2));
}

TEST_CASE("Gpt2Config: two names of a dtype must agree", "[model][config]") {
  const auto read = [](const std::string& dtype) {
    return error_of([&] {
      parse_gpt2(R"({"model_type":"gpt2","torch_dtype":"torch.float32","dtype":)" + dtype + "}");
    });
  };
  CHECK(read("\"float32\"").empty());
  CHECK(read("null").empty());
  CHECK_THAT(read("\"bfloat16\""),
             Catch::Matchers::ContainsSubstring(
                 "dtype is \"bfloat16\" and torch_dtype is \"torch.float32\""));
}

TEST_CASE("Gpt2Config: ids of special tokens fit the vocabulary", "[model][config]") {
  const auto ids = [](Gpt2Config config, const std::string& overrides) {
    config.apply_overrides(overrides);
    const auto json = nlohmann::json::parse(config.to_json());
    return std::pair(json.value("bos_token_id", nlohmann::json("absent")),
                     json.value("eos_token_id", nlohmann::json("absent")));
  };
  const nlohmann::json none;
  const Gpt2Config small = gpt2_preset("gpt2");
  CHECK(ids(small, "") == std::pair(nlohmann::json(50256), nlohmann::json(50256)));
  CHECK(ids(small, "vocab_size=50304") == std::pair(nlohmann::json(50256), nlohmann::json(50256)));
  CHECK(ids(small, "vocab_size=256") == std::pair(none, none));
  const std::string source = R"({"model_type":"gpt2","eos_token_id":7})";
  const Gpt2Config read = parse_gpt2(source);
  CHECK(ids(read, "") == std::pair(nlohmann::json("absent"), nlohmann::json(7)));
  CHECK(ids(read, "vocab_size=256") == std::pair(none, nlohmann::json(7)));
}

TEST_CASE("Gpt2Config: a byte model is recognized", "[model][config]") {
  Gpt2Config config = gpt2_preset("gpt2");
  CHECK_FALSE(parse_gpt2(config.to_json()).byte_tokens);
  config.byte_tokens = true;
  CHECK(parse_gpt2(config.to_json()).byte_tokens);
}

TEST_CASE("Gpt2Config: two models differ by sizes and the epsilon", "[model][config]") {
  const Gpt2Config before = gpt2_preset("gpt2");
  Gpt2Config after = before;
  after.apply_overrides("embd_pdrop=0.5,initializer_range=1");
  after.source = R"({"model_type":"gpt2","own_key":1})";
  CHECK(before.differences(after).empty());
  after.apply_overrides("n_layer=3,layer_norm_epsilon=0.5");
  const auto found = before.differences(after);
  REQUIRE(found.size() == 2);
  CHECK(found[0].key == "n_layer");
  CHECK(found[0].before == "12");
  CHECK(found[0].after == "3");
  CHECK(found[1].key == "layer_norm_epsilon");
}

}  // namespace dstrain::test
