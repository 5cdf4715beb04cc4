// The memory of a decoder: as much as it says, and of a device that the host cannot reach.
#include <optional>

#include "runtime/device/cpu_stream.h"
#include "runtime/model/hf_import.h"
#include "tests/engine/decoder_families.h"
#include "tests/support/catch.h"
#include "tests/support/deferred_device.h"
#include "tests/support/deferred_ops.h"
#include "tests/support/whole_store.h"

namespace dstrain {
namespace {

namespace fs = std::filesystem;
using test::Feeder;
using test::Text;

/// A golden model on the CPU, or on a deferred device of that seed.
class DecodingPlace {
 public:
  DecodingPlace(const fs::path& folder, std::optional<std::uint64_t> deferred) {
    if (deferred) {
      test::install_deferred_ops();
      device_.emplace(*deferred);
      stream_ = device_->make_stream();
    } else {
      stream_ = std::make_unique<CpuStream>(CpuStream::Mode::inline_on_caller);
    }
    MemoryResource& memory = deferred ? device_->memory() : host_;
    activations_.emplace(memory, ledger, TrackedMemory::Options{MemoryCategory::activations});
    model.emplace(test::golden_model(folder, "", {.device = memory.device().kind}));
    store_.emplace(*model, 0.0F);
    store_->read(*model, model::HfWeights(folder.string(), model->parameters(), model->hf_names));
    if (deferred) store_->move_to(memory, *stream_);
  }

  [[nodiscard]] engine::Decoder decoder(const engine::Decoder::Options& options) {
    return {{*model, *store_, *activations_, host_activations_}, options, *stream_};
  }

  std::optional<model::Model> model;
  MemoryLedger ledger;
  MemoryLedger host_ledger;

 private:
  HostMemory host_;
  std::optional<test::DeferredDevice> device_;
  std::unique_ptr<Stream> stream_;
  std::optional<TrackedMemory> activations_;
  TrackedMemory host_activations_{host_, host_ledger, {MemoryCategory::activations}};
  std::optional<test::WholeStore> store_;
};

engine::Decoder::Options some_options(const model::Model& model, std::int64_t slots) {
  return {.slots = slots,
          .positions = std::min<std::int64_t>(model.positions, 30),
          .chunk = 16,
          .source = model.pairs ? 25 : 0};
}

/// Logits of a few texts that grow, with calls of one or of two.
std::vector<float> logits_of_texts(DecodingPlace& place, engine::Decoder& decoder) {
  std::vector<float> all;
  const auto add = [&](std::span<const float> logits) {
    all.insert(all.end(), logits.begin(), logits.end());
  };
  const bool pairs = place.model->pairs.has_value();
  const Text one = test::random_text(*place.model, 3, 30);
  const Text two = test::random_text(*place.model, 4, 30);
  add(Feeder(decoder, one, 1).prompt(pairs ? 1 : 19));
  add(Feeder(decoder, two, 0).prompt(pairs ? 1 : 3));
  for (std::int32_t i = 0; i < 6; ++i) {
    const std::array<std::int32_t, 2> slots{0, 1};
    const std::array past{(pairs ? 1 : 3) + i, (pairs ? 1 : 19) + i};
    const std::array length{past[0] + 1, past[1] + 1};
    const std::array tokens{two.tokens[static_cast<std::size_t>(past[0])],
                            one.tokens[static_cast<std::size_t>(past[1])]};
    const std::array counts{static_cast<std::int32_t>(two.source.size()),
                            static_cast<std::int32_t>(one.source.size())};
    const std::size_t used = i % 3 == 2 ? 1 : 2;
    if (used == 1) add(Feeder(decoder, one, 1).next(past[1]));
    const auto first = [&](const auto& values) {
      return std::span<const std::int32_t>(values).first(used);
    };
    add(decoder
            .run({.tokens = first(tokens),
                  .slot = first(slots),
                  .past = first(past),
                  .length = first(length),
                  .source_count = pairs ? first(counts) : std::span<const std::int32_t>()})
            .as<const float>());
  }
  return all;
}

}  // namespace

TEST_CASE("Decoder: allocates what it says for every family", "[engine]") {
  const std::int64_t slots = GENERATE(1, 3, 20);
  const bool deferred = GENERATE(false, true);
  for (const fs::path& folder : test::golden_families()) {
    CAPTURE(folder.filename().string(), slots, deferred);
    DecodingPlace place(folder, deferred ? std::optional<std::uint64_t>(1) : std::nullopt);
    const engine::Decoder::Options options = some_options(*place.model, slots);
    const engine::FrameBytes bytes = engine::Decoder::bytes(*place.model, options);
    {
      engine::Decoder decoder = place.decoder(options);
      CHECK(place.ledger.current() == bytes.device);
      CHECK(place.host_ledger.current() == bytes.host);
      if (slots > 1) logits_of_texts(place, decoder);
      CHECK(place.ledger.peak() == bytes.device);
      CHECK(place.host_ledger.peak() == bytes.host);
    }
    CHECK((bytes.host > 0) == deferred);
    CHECK(engine::Decoder::cache_bytes(*place.model, options) < bytes.device);
    CHECK(place.ledger.current() == 0);
    CHECK(place.host_ledger.current() == 0);
  }
}

TEST_CASE("Decoder: a deferred device has the bits of the CPU for every family", "[engine]") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(1, 2, 3, 4));
  for (const fs::path& folder : test::golden_families()) {
    CAPTURE(folder.filename().string(), seed);
    const auto run = [&](std::optional<std::uint64_t> deferred) {
      DecodingPlace place(folder, deferred);
      engine::Decoder decoder = place.decoder(some_options(*place.model, 2));
      return logits_of_texts(place, decoder);
    };
    const std::vector<float> expected = run(std::nullopt);
    CHECK((run(seed) == expected));
  }
}

}  // namespace dstrain
