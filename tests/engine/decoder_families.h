#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/engine/decoder.h"
#include "runtime/model/families.h"
#include "runtime/model/model.h"
#include "runtime/numeric/philox.h"

namespace dstrain::test {

/// The folders of the golden models of all families.
inline std::vector<std::filesystem::path> golden_families() {
  namespace fs = std::filesystem;
  const fs::path golden = fs::path(DSTRAIN_SOURCE_DIR) / "tests/golden";
  std::vector<fs::path> all{golden / "model"};
  for (const char* const kind : {"families", "pairs"}) {
    for (const fs::directory_entry& entry : fs::directory_iterator(golden / kind)) {
      if (entry.is_directory()) all.push_back(entry.path());
    }
  }
  return all;
}

/// The model of such a folder, with changes to its configuration.
inline model::Model golden_model(const std::filesystem::path& folder,
                                 const std::string& overrides = "",
                                 const model::UnitOptions& options = {}) {
  const auto config = model::load_stored_config(folder.string());
  if (!overrides.empty()) config->apply_overrides(overrides);
  return config->make(options);
}

using Tokens = std::vector<std::int32_t>;

/// One sequence and, of an encoder-decoder, its source.
struct Text {
  Tokens tokens;
  Tokens source;
};

/// Tokens at random.
inline Text random_text(const model::Model& model, std::uint64_t seed, std::int64_t length) {
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

}  // namespace dstrain::test
