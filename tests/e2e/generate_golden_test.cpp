// dstrain generate against transformers: golden/generate.json.
#include <fmt/format.h>

#include "tests/e2e/generate_run.h"
#include "tests/support/catch.h"

using namespace dstrain;
using nlohmann::json;
using test::Words;
namespace fs = std::filesystem;

namespace {

const json& golden() {
  static const json made = test::read_json(test::golden_folder / "generate.json");
  return made;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, made] : golden().items()) {
    if (made.contains("prompts")) all.push_back(name);
  }
  return all;
}

/// What has to be the end of a text of these tokens.
std::string end_of(const json& options, const json& tokens) {
  for (const json& end : options.value("eos_token_id", json::array())) {
    if (tokens.back() == end) return "eos";
  }
  return "length";
}

}  // namespace

TEST_CASE("generate: greedy texts of every family are those of transformers",
          "[e2e][generate][golden]") {
  const std::string name = GENERATE(from_range(names()));
  CAPTURE(name);
  const json& made = golden().at(name);
  const json& prompts = made.at("prompts");
  for (const json& golden_case : made.at("cases")) {
    const json& options = golden_case.at("options");
    CAPTURE(options);
    json defaults = options;
    defaults.erase("repetition_penalty");
    const test::ModelCopy model(name, defaults);
    Words words{"--prompt_file",
                test::write_prompts(model.folder() / "prompts.jsonl",
                                    test::id_prompts(prompts.get<std::vector<std::vector<int>>>())),
                "--max_new_tokens", made.at("max_new_tokens").dump()};
    if (!options.contains("eos_token_id")) words.emplace_back("--ignore_eos");
    if (options.contains("repetition_penalty")) {
      words = test::joined(words, {"--repetition_penalty", options["repetition_penalty"].dump()});
    }
    for (const std::size_t batch : {std::size_t{1}, std::size_t{3}, prompts.size()}) {
      CAPTURE(batch);
      const auto texts =
          test::generate(model.directory(),
                         test::joined(words, {"--batch_size", std::to_string(batch)}))
              .texts();
      REQUIRE(texts.size() == prompts.size());
      for (std::size_t i = 0; i < texts.size(); ++i) {
        const json& expected = golden_case.at("texts")[i];
        if (expected.is_null()) continue;
        CAPTURE(prompts[i].size());
        CHECK(texts[i].at("completion_ids") == expected);
        CHECK(texts[i].at("finish_reason") == end_of(options, expected));
      }
    }
  }
}
