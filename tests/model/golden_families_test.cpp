// Logits and greedy tokens of each family against transformers'; see make_families.py and
// make_pairs.py in tests/golden.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "runtime/model/families.h"
#include "runtime/model/hf_import.h"
#include "tests/model/unit_chain.h"
#include "tests/support/catch.h"
#include "tests/support/tensor_compare.h"

namespace dstrain {
namespace {

namespace fs = std::filesystem;

const fs::path golden_folder = fs::path(DSTRAIN_SOURCE_DIR) / "tests/golden";

/// One sequence and, of an encoder-decoder, its source.
struct Text {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> source;
};

/// Logits behind the last token.
std::vector<float> logits_after(const model::Model& model,
                                const model::HfWeights& weights,
                                const Text& text) {
  test::UnitChain chain(model, {1, std::ssize(text.tokens), std::ssize(text.source)});
  for (const model::ParameterSpec& spec : model.parameters()) {
    weights.read(spec, 0, chain.parameters[spec.name]);
  }
  chain.tokens = text.tokens;
  chain.labels.assign(text.tokens.size(), -100);
  chain.source = text.source;
  chain.source_count = {static_cast<std::int32_t>(text.source.size())};
  chain.forward();
  return chain.last_logits();
}

void check_family(const fs::path& folder) {
  CAPTURE(folder.filename().string());
  const auto golden = nlohmann::json::parse(std::ifstream(folder / "run.json"));
  const model::Model model = model::load_stored_config(folder.string())->make();
  CHECK(model.parameter_count() == golden.at("parameters"));
  const model::HfWeights weights(folder.string(), model.parameters(), model.hf_names);
  Text text{golden.at("tokens"), golden.value("source", std::vector<std::int32_t>())};
  CHECK(test::difference(logits_after(model, weights, text),
                         golden.at("last_logits").get<std::vector<double>>(),
                         test::tolerance::model) == "");
  text.tokens.resize(text.source.empty() ? 8 : 1);  // a prompt, or what a decoder begins with
  std::vector<std::int32_t> greedy;
  for (std::size_t i = 0; i < golden.at("greedy").size(); ++i) {
    const std::vector<float> logits = logits_after(model, weights, text);
    const auto best = std::ranges::max_element(logits) - logits.begin();
    greedy.push_back(static_cast<std::int32_t>(best));
    text.tokens.push_back(greedy.back());
  }
  CHECK(greedy == golden.at("greedy").get<std::vector<std::int32_t>>());
}

TEST_CASE("Families: logits and greedy tokens are those of transformers", "[model][golden]") {
  std::size_t families = 0;
  for (const char* const kind : {"families", "pairs"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(golden_folder / kind)) {
      if (!entry.is_directory()) continue;
      check_family(entry.path());
      ++families;
    }
  }
  CHECK(families >= 13);
}

TEST_CASE("Families: presets have as many parameters as their units say", "[model]") {
  const auto [name, count] = GENERATE(table<std::string, std::int64_t>({
      {"llama-2-7b", 6'738'415'616},
      {"llama-3-8b", 8'030'261'248},
      {"llama-3.2-1b", 1'235'814'400},
      {"mistral-7b", 7'241'732'096},
      {"qwen2.5-0.5b", 494'032'768},
      {"qwen3-0.6b", 596'049'920},
      {"phi-3-mini-4k", 3'821'079'552},
      {"phi-3-medium-4k", 13'960'238'080},
      {"phi-4", 14'659'507'200},
      {"phi-4-mini", 3'836'021'760},
      {"t5-small", 60'506'624},
      {"T0_3B", 2'849'757'184},
  }));
  CHECK(model::model_preset(name)->make().parameter_count() == count);
}

// transformers' Phi-3 reads embd_pdrop, too, and never applies it.
TEST_CASE("Families: the dropouts that Phi-3 applies change what is trained and no more",
          "[model]") {
  const std::string rate =
      GENERATE("embd_pdrop=0.5", "resid_pdrop=0.5", "attention_dropout=0.5", "");
  CAPTURE(rate);
  const auto config = model::load_model_config((golden_folder / "families/phi3").string());
  config->apply_overrides(rate);
  const model::Model model = config->make();
  test::UnitChain chain(model, {2, 12});
  chain.fill(1, 0.2F);
  chain.tokens = test::random_tokens(24, 2, 160);
  chain.labels = chain.tokens;
  chain.forward();
  const std::vector<float> plain = chain.activations.at("hidden2");
  chain.dropout.training = true;
  chain.forward();
  CHECK((chain.activations.at("hidden2") == plain) ==
        (rate.empty() || rate.starts_with("embd_pdrop")));
}

}  // namespace
}  // namespace dstrain
