#include "runtime/model/families.h"

#include <set>

#include <nlohmann/json.hpp>

#include "tests/safetensors/files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {

TEST_CASE("Families: each is found by its model_type and writes its class name",
          "[model][config]") {
  for (const model::ModelFamily* const family : model::model_families()) {
    CAPTURE(family->model_type);
    const std::string text = fmt::format(R"({{"model_type": "{}"}})", family->model_type);
    const auto config = model::parse_model_config(text, "c");
    CHECK(&config->family() == family);
    const auto document = nlohmann::json::parse(config->to_json());
    CHECK(document["architectures"] == nlohmann::json::array({family->architecture}));
    CHECK(document["model_type"] == family->model_type);
    CHECK(document.size() == 3);  // and torch_dtype: nothing was changed
  }
}

TEST_CASE("Families: a model_type that is not built is refused", "[model][config]") {
  CHECK(error_of([] { model::parse_model_config(R"({"n_embd": 64})", "d/config.json"); }) ==
        "d/config.json: model_type is null; only \"gpt2\", \"llama\", \"mistral\", \"qwen2\", "
        "\"qwen3\", \"phi3\" and \"t5\" are built");
  CHECK_THAT(error_of([] { model::parse_model_config(R"({"model_type": ["gpt2"]})", "c"); }),
             Catch::Matchers::StartsWith("c: model_type is [\"gpt2\"]; only "));
}

TEST_CASE("Families: presets write every key and read back as they are", "[model][config]") {
  std::set<std::string_view> names;
  for (const model::ModelFamily* const family : model::model_families()) {
    for (const model::ModelPreset& preset : family->presets) {
      CAPTURE(preset.name);
      CHECK(names.insert(preset.name).second);
      CHECK(model::is_model_preset(preset.name));
      const auto config = model::model_preset(preset.name);
      CHECK_NOTHROW(config->check());
      const std::string text = config->to_json();
      const auto again = model::parse_model_config(text, "c");
      CHECK(&again->family() == family);
      CHECK(again->differences(*config).empty());
      CHECK(again->to_json() == text);
      const auto document = nlohmann::json::parse(text);
      for (const model::ConfigField& field : family->fields) {
        const bool written = field.access.kind != model::ConfigAccess::Kind::text;
        CHECK((document.contains(field.name) || !written));
      }
    }
  }
  CHECK(names.size() > 10);
}

TEST_CASE("Families: unknown presets are refused", "[model][config]") {
  CHECK_FALSE(model::is_model_preset("gpt3"));
  CHECK(error_of([] { model::load_model_config("gpt3"); }) ==
        "model 'gpt3': no such preset, file or directory; presets are gpt2, gpt2-medium, "
        "gpt2-large, gpt2-xl, llama-2-7b, llama-2-13b, llama-2-70b, llama-3-8b, llama-3.1-8b, "
        "llama-3.2-1b, llama-3.2-3b, tinyllama-1.1b, mistral-7b, qwen2-0.5b, qwen2.5-0.5b, "
        "qwen3-0.6b, phi-3-mini-4k, phi-3-medium-4k, phi-4, phi-4-mini, t5-small, t5-base, "
        "t5-large, t5-3b, T0_3B; a config.json works too");
}

TEST_CASE("Families: a name is a preset or a file or a directory", "[model][config]") {
  const TempDir directory;
  const std::string file = (directory.path() / "config.json").string();
  const auto hidden = [](const std::string& name) {
    return model::load_model_config(name)->hidden();
  };
  write_file(file, R"({"model_type":"gpt2","n_embd":24})");
  CHECK(hidden("gpt2-xl") == 1600);
  CHECK(hidden(file) == 24);
  CHECK(hidden(directory.path().string()) == 24);
  std::filesystem::remove(file);
  CHECK_THAT(error_of([&] { hidden(directory.path().string()); }),
             Catch::Matchers::StartsWith(file));
  write_file(file, std::string((1 << 20) + 1, ' '));
  CHECK_THAT(error_of([&] { hidden(file); }), Catch::Matchers::StartsWith(file));
}

}  // namespace dstrain::test
