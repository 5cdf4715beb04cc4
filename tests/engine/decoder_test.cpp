// Logits of a decoder with a cache against those of the whole text, for each family.
#include "runtime/engine/decoder.h"

#include <filesystem>

#include "runtime/device/cpu_stream.h"
#include "runtime/engine/engine.h"
#include "runtime/model/hf_import.h"
#include "runtime/model/random_source.h"
#include "tests/engine/decoder_families.h"
#include "tests/support/catch.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/whole_store.h"

namespace dstrain {
namespace {

namespace fs = std::filesystem;
using test::Feeder;
using test::Text;
using test::Tokens;

constexpr std::int64_t some_positions = 40;

/// A golden model with its parameters.
class Place {
 public:
  explicit Place(const fs::path& folder) : Place(folder, "", some_positions) {}
  /// `overrides`: not of shapes, unless they make parameters anew by `initializer_range`.
  Place(const fs::path& folder, const std::string& overrides, std::int64_t most)
      : model(test::golden_model(folder, overrides)),
        store(model, 0),
        positions(std::min(most, model.positions)) {
    if (overrides.find("initializer_range") != std::string::npos) {
      store.read(model, model::RandomSource(3, model.parameters()));
    } else {
      store.read(model, model::HfWeights(folder.string(), model.parameters(), model.hf_names));
    }
  }

  /// Behind the last token, of a model that sees the whole text at once.
  std::vector<float> logits(const Text& text) {
    engine::Engine engine(inputs(),
                          {.shape = {1, std::ssize(text.tokens), std::ssize(text.source)}}, stream);
    const auto count = static_cast<std::int32_t>(text.source.size());
    std::vector<float> logits(static_cast<std::size_t>(model.vocabulary));
    engine.logits({.tokens = text.tokens,
                   .labels = {},
                   .source = text.source,
                   .source_count = {&count, model.pairs ? std::size_t{1} : 0}},
                  HostView(logits, {1, model.vocabulary}));
    return logits;
  }
  [[nodiscard]] engine::EngineInputs inputs() { return {model, store, memory, memory}; }
  [[nodiscard]] engine::Decoder decoder(std::int64_t slots, std::int64_t chunk = 512) {
    return {
        inputs(),
        {.slots = slots, .positions = positions, .chunk = chunk, .source = model.pairs ? 30 : 0},
        stream};
  }
  model::Model model;
  test::WholeStore store;
  std::int64_t positions;
  HostMemory memory;
  CpuStream stream{CpuStream::Mode::inline_on_caller};
};

constexpr test::Tolerance same_text{1e-5, 1e-5};

}  // namespace

TEST_CASE("Decoder: cached logits are those of the whole text for every family", "[engine]") {
  const std::int64_t any_prompt = GENERATE(1, 2, 9, 16, 21, 35);
  for (const fs::path& folder : test::golden_families()) {
    CAPTURE(folder.filename().string());
    Place here(folder);
    engine::Decoder decoder = here.decoder(2, 16);
    const std::int64_t most = decoder.options().positions;
    const Text text = test::random_text(here.model, 7, most);
    const std::int64_t prompt = here.model.pairs ? 1 : std::min(any_prompt, most);
    Feeder feeder(decoder, text, 1);
    for (std::int64_t length = prompt; length <= most; ++length) {
      CAPTURE(prompt, length);
      Text part = text;
      part.tokens.resize(static_cast<std::size_t>(length));
      const bool restarts = length == prompt || length == here.model.short_context + 1;
      const auto logits = restarts ? feeder.prompt(length) : feeder.next(length - 1);
      CHECK(test::difference(logits, here.logits(part), same_text) == "");
    }
  }
}

TEST_CASE("Decoder: a sequence has the same bits beside others", "[engine]") {
  for (const fs::path& folder : test::golden_families()) {
    CAPTURE(folder.filename().string());
    Place here(folder);
    constexpr std::int64_t steps = 6;
    const auto prompt_of = [&](std::int32_t slot) {
      return here.model.pairs ? std::int64_t{1} : 3 + 5 * std::int64_t{slot};
    };
    std::vector<std::vector<float>> alone;
    std::vector<Text> texts;
    for (std::int32_t slot = 0; slot < 3; ++slot) {
      texts.push_back(test::random_text(here.model, 20 + static_cast<std::uint64_t>(slot),
                                        prompt_of(slot) + steps));
      engine::Decoder decoder = here.decoder(1);
      Feeder feeder(decoder, texts.back(), 0);
      feeder.prompt(prompt_of(slot));
      for (std::int64_t i = 0; i < steps; ++i) alone.push_back(feeder.next(prompt_of(slot) + i));
    }
    engine::Decoder decoder = here.decoder(3);
    for (std::int32_t slot = 0; slot < 3; ++slot) {
      Feeder(decoder, texts[static_cast<std::size_t>(slot)], slot).prompt(prompt_of(slot));
    }
    for (std::int64_t i = 0; i < steps; ++i) {
      Tokens tokens, slots, past, lengths, counts;
      for (const std::int32_t slot : {2, 0, 1}) {
        const Text& text = texts[static_cast<std::size_t>(slot)];
        const std::int64_t at = prompt_of(slot) + i;
        tokens.push_back(text.tokens[static_cast<std::size_t>(at)]);
        slots.push_back(slot);
        past.push_back(static_cast<std::int32_t>(at));
        lengths.push_back(static_cast<std::int32_t>(at + 1));
        if (here.model.pairs) counts.push_back(static_cast<std::int32_t>(text.source.size()));
      }
      const HostView logits = decoder.run({.tokens = tokens,
                                           .slot = slots,
                                           .past = past,
                                           .length = lengths,
                                           .source_count = counts});
      for (std::size_t row = 0; row < 3; ++row) {
        const auto found = logits.rows(static_cast<std::int64_t>(row), 1).as<const float>();
        const auto& expected =
            alone[static_cast<std::size_t>(slots[row]) * steps + static_cast<std::size_t>(i)];
        CAPTURE(i, slots[row]);
        CHECK(std::ranges::equal(found, expected));
      }
    }
  }
}

TEST_CASE("Decoder: cached logits of long texts are those of the whole text", "[engine]") {
  struct Row {
    const char* folder;
    const char* overrides;
  };
  const Row row = GENERATE(values<Row>({
      {"model", "n_positions=700,initializer_range=0.3"},
      {"families/llama2", "max_position_embeddings=700"},
      {"families/llama3", "max_position_embeddings=700"},
      {"families/llama_linear", "max_position_embeddings=700"},
      {"families/llama_yarn", "max_position_embeddings=700"},
      {"families/mistral", "max_position_embeddings=700"},
      {"families/mistral", "max_position_embeddings=700,sliding_window=1"},
      {"families/mistral", "max_position_embeddings=700,sliding_window=64"},
      {"families/mistral", "max_position_embeddings=700,sliding_window=100"},
      {"families/mistral", "max_position_embeddings=700,sliding_window=600"},
      {"families/qwen2", "max_position_embeddings=700"},
      {"families/qwen3", "max_position_embeddings=700"},
      {"families/phi3", "max_position_embeddings=700"},
      {"families/phi3_longrope", "max_position_embeddings=700"},
  }));
  const std::int64_t chunk = GENERATE(512, 100);
  CAPTURE(row.folder, row.overrides, chunk);
  const fs::path golden = fs::path(DSTRAIN_SOURCE_DIR) / "tests/golden";
  Place here(golden / row.folder, row.overrides, 680);
  engine::Decoder decoder = here.decoder(2, chunk);
  std::uint64_t seed = 40;
  for (const std::int64_t prompt :
       {63, 64, 65, 66, 99, 100, 101, 128, 511, 512, 513, 514, 577, 676}) {
    const Text text = test::random_text(here.model, ++seed, prompt + 2);
    // One slot has been used by a longer text before, or by a shorter one.
    Feeder feeder(decoder, text, static_cast<std::int32_t>(prompt % 2));
    for (std::int64_t length = prompt; length <= prompt + 2; ++length) {
      CAPTURE(prompt, length);
      Text part = text;
      part.tokens.resize(static_cast<std::size_t>(length));
      const auto logits = length == prompt ? feeder.prompt(length) : feeder.next(length - 1);
      CHECK(test::difference(logits, here.logits(part), same_text) == "");
    }
  }
}

TEST_CASE("Decoder: a ring of keys goes round many times", "[engine]") {
  const fs::path golden = fs::path(DSTRAIN_SOURCE_DIR) / "tests/golden";
  const std::string window = GENERATE("1", "9", "63", "64", "65");
  const std::int64_t chunk = GENERATE(1, 7, 64);
  Place here(golden / "families/mistral", "max_position_embeddings=700,sliding_window=" + window,
             500);
  engine::Decoder decoder = here.decoder(1, chunk);
  const Text text = test::random_text(here.model, 5, 500);
  Feeder feeder(decoder, text, 0);
  for (std::int64_t length = 20; length <= 500; ++length) {
    const auto logits = length == 20 ? feeder.prompt(length) : feeder.next(length - 1);
    if (length % 13 != 0 && length < 495) continue;
    CAPTURE(window, chunk, length);
    Text part = text;
    part.tokens.resize(static_cast<std::size_t>(length));
    CHECK(test::difference(logits, here.logits(part), same_text) == "");
  }
}

}  // namespace dstrain
