// Logits of a decoder with a cache against those of the whole text, for each family.
#include "runtime/engine/decoder.h"

#include <filesystem>
#include <map>

#include "runtime/device/cpu_stream.h"
#include "runtime/engine/engine.h"
#include "runtime/model/families.h"
#include "runtime/model/hf_import.h"
#include "runtime/numeric/philox.h"
#include "tests/support/catch.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/whole_store.h"

namespace dstrain {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<std::int32_t>;

/// One sequence and, of an encoder-decoder, its source.
struct Text {
  Tokens tokens;
  Tokens source;
};

constexpr std::int64_t positions = 40;

/// A golden model with its parameters.
class Place {
 public:
  explicit Place(const fs::path& folder, const std::string& overrides = "")
      : model(make(folder, overrides)), store(model, 0) {
    store.read(model, model::HfWeights(folder.string(), model.parameters(), model.hf_names));
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
    return {inputs(),
            {.slots = slots,
             .positions = std::min(positions, model.positions),
             .chunk = chunk,
             .source = model.pairs ? 30 : 0},
            stream};
  }
  [[nodiscard]] Text random_text(std::uint64_t seed, std::int64_t length) const {
    Text text;
    const auto draw = [&](Tokens& tokens, std::int64_t count, std::uint64_t purpose) {
      for (std::int64_t i = 0; i < count; ++i) {
        tokens.push_back(static_cast<std::int32_t>(
            uniform_below({.seed = seed, .index = purpose + static_cast<std::uint64_t>(i)},
                          static_cast<std::uint64_t>(model.vocabulary))));
      }
    };
    draw(text.tokens, length, 0);
    if (model.pairs) draw(text.source, 3 + static_cast<std::int64_t>(seed % 20), 1000);
    return text;
  }

  model::Model model;
  test::WholeStore store;
  HostMemory memory;
  CpuStream stream{CpuStream::Mode::inline_on_caller};

 private:
  static model::Model make(const fs::path& folder, const std::string& overrides) {
    const auto config = model::load_stored_config(folder.string());
    if (!overrides.empty()) config->apply_overrides(overrides);
    return config->make();
  }
};

/// Feeds a text to a slot: the first `prompt` tokens in chunks, the rest one by one.
class Feeder {
 public:
  Feeder(engine::Decoder& decoder, const Text& text, std::int32_t slot)
      : decoder_(decoder), text_(text), slot_(slot) {}

  std::vector<float> prompt(std::int64_t length) {
    std::vector<float> logits;
    for (std::int64_t past = 0; past < length; past += decoder_.options().chunk) {
      logits = run(past, std::min(decoder_.options().chunk, length - past), length);
    }
    return logits;
  }
  std::vector<float> next(std::int64_t past) { return run(past, 1, past + 1); }

 private:
  std::vector<float> run(std::int64_t past, std::int64_t count, std::int64_t length) {
    const auto from = static_cast<std::int32_t>(past);
    const auto whole = static_cast<std::int32_t>(length);
    const auto sources = static_cast<std::int32_t>(text_.source.size());
    const bool pairs = !text_.source.empty();
    const HostView view = decoder_.run(
        {.tokens = std::span(text_.tokens)
                       .subspan(static_cast<std::size_t>(past), static_cast<std::size_t>(count)),
         .slot = {&slot_, 1},
         .past = {&from, 1},
         .length = {&whole, 1},
         .source = past == 0 ? std::span(text_.source) : std::span<const std::int32_t>(),
         .source_count = {&sources, pairs ? std::size_t{1} : 0}});
    const auto values = view.as<const float>();
    return {values.begin(), values.end()};
  }

  engine::Decoder& decoder_;
  const Text& text_;
  std::int32_t slot_;
};

std::vector<fs::path> families() {
  const fs::path golden = fs::path(DSTRAIN_SOURCE_DIR) / "tests/golden";
  std::vector<fs::path> all{golden / "model"};
  for (const char* const kind : {"families", "pairs"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(golden / kind)) {
      if (entry.is_directory()) all.push_back(entry.path());
    }
  }
  return all;
}

constexpr test::Tolerance same_text{1e-5, 1e-5};

}  // namespace

TEST_CASE("Decoder: cached logits are those of the whole text for every family", "[engine]") {
  const std::int64_t any_prompt = GENERATE(1, 2, 9, 16, 21, 35);
  for (const fs::path& folder : families()) {
    CAPTURE(folder.filename().string());
    Place here(folder);
    engine::Decoder decoder = here.decoder(2, 16);
    const std::int64_t most = decoder.options().positions;
    const Text text = here.random_text(7, most);
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
  for (const fs::path& folder : families()) {
    CAPTURE(folder.filename().string());
    Place here(folder);
    constexpr std::int64_t steps = 6;
    const auto prompt_of = [&](std::int32_t slot) {
      return here.model.pairs ? std::int64_t{1} : 3 + 5 * std::int64_t{slot};
    };
    std::vector<std::vector<float>> alone;
    std::vector<Text> texts;
    for (std::int32_t slot = 0; slot < 3; ++slot) {
      texts.push_back(
          here.random_text(20 + static_cast<std::uint64_t>(slot), prompt_of(slot) + steps));
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

}  // namespace dstrain
