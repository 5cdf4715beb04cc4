// Whole texts, beside those of transformers (tests/golden/beams.json).
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "runtime/device/cpu_stream.h"
#include "runtime/engine/generator.h"
#include "runtime/model/families.h"
#include "runtime/model/hf_import.h"
#include "tests/support/catch.h"
#include "tests/support/whole_store.h"

namespace dstrain {
namespace {

using nlohmann::json;
using Ids = std::vector<std::int32_t>;

/// A golden model with its parameters.
struct GoldenModel {
  explicit GoldenModel(const std::string& name)
      : GoldenModel(std::filesystem::path(DSTRAIN_SOURCE_DIR) / "tests/golden" / name, 0) {}
  GoldenModel(const std::filesystem::path& folder, float value)
      : model(model::load_stored_config(folder.string())->make()), store(model, value) {
    store.read(model, model::HfWeights(folder.string(), model.parameters(), model.hf_names));
  }
  model::Model model;
  test::WholeStore store;
  HostMemory memory;
  CpuStream stream{CpuStream::Mode::inline_on_caller};
};

class Texts final : public engine::TextListener {
 public:
  struct Text {
    Ids tokens;
    std::optional<engine::FinishReason> reason;
  };
  Answer add(std::size_t index, std::int32_t token) override {
    texts[index].tokens.push_back(token);
    return Answer::goes_on;
  }
  void end(std::size_t index, engine::FinishReason reason) override {
    texts[index].reason = reason;
  }
  std::map<std::size_t, Text> texts;
};

engine::ChoiceOptions choice_of(const json& options) {
  engine::ChoiceOptions choice;
  choice.repetition_penalty = options.value("repetition_penalty", 1.0);
  choice.min_new_tokens = options.value("min_new_tokens", 0);
  choice.end_tokens = options.value("eos_token_id", Ids());
  choice.beam.num_beams = options.at("num_beams");
  choice.beam.num_return_sequences = options.value("num_return_sequences", 1);
  choice.beam.length_penalty = options.value("length_penalty", 1.0);
  const json stopping = options.value("early_stopping", json(false));
  if (stopping == "never") choice.beam.early_stopping = engine::EarlyStopping::never;
  if (stopping == true) choice.beam.early_stopping = engine::EarlyStopping::yes;
  return choice;
}

/// Generates for all requests in `groups` groups of slots, with prompts that run in chunks.
std::map<std::size_t, Texts::Text> beam_texts(GoldenModel& golden,
                                              const engine::ChoiceOptions& choice,
                                              std::span<const engine::TextRequest> requests,
                                              std::int64_t groups) {
  engine::Decoder::Options options{.slots = groups * choice.beam.num_beams, .chunk = 8};
  for (const engine::TextRequest& request : requests) {
    const auto given = golden.model.pairs ? 1 : std::ssize(request.prompt);
    options.positions = std::max(options.positions, given + request.max_new_tokens - 1);
    if (golden.model.pairs) options.source = std::max(options.source, std::ssize(request.prompt));
  }
  engine::Decoder decoder({golden.model, golden.store, golden.memory, golden.memory}, options,
                          golden.stream);
  const auto control = comm::make_self_control_group();
  Texts texts;
  engine::Generator(decoder, {.choice = choice}, *control).run(requests, texts);
  return std::move(texts.texts);
}

class GoldenModels {
 public:
  GoldenModel& of(const std::string& name) {
    auto& model = models_[name];
    if (!model) model = std::make_unique<GoldenModel>(name);
    return *model;
  }

 private:
  std::map<std::string, std::unique_ptr<GoldenModel>> models_;
};

void check_texts(const std::map<std::size_t, Texts::Text>& found,
                 const json& prompts,
                 const engine::ChoiceOptions& choice) {
  std::size_t index = 0;
  for (const json& prompt : prompts) {
    for (const json& expected : prompt.at("texts")) {
      const Texts::Text& text = found.at(index++);
      CHECK(text.tokens == expected.at("tokens").get<Ids>());
      const bool ends =
          std::ranges::find(choice.end_tokens, text.tokens.back()) != choice.end_tokens.end();
      CHECK(text.reason == (ends ? engine::FinishReason::eos : engine::FinishReason::length));
    }
  }
  CHECK(found.size() == index);
}

}  // namespace

TEST_CASE("Generator: beams find the texts of transformers alone and in batches", "[engine]") {
  const std::int64_t groups = GENERATE(1, 2);
  std::ifstream file(DSTRAIN_SOURCE_DIR "/tests/golden/beams.json");
  GoldenModels models;
  for (const json& row : json::parse(file)) {
    CAPTURE(groups, row.dump());
    const engine::ChoiceOptions choice = choice_of(row.at("options"));
    std::vector<engine::TextRequest> requests;
    for (const json& prompt : row.at("prompts")) {
      requests.push_back({prompt.at("ids").get<Ids>(), row.at("max_new_tokens")});
    }
    check_texts(beam_texts(models.of(row.at("model")), choice, requests, groups), row.at("prompts"),
                choice);
  }
}

}  // namespace dstrain
