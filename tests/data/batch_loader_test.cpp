#include "runtime/data/batch_loader.h"

#include <algorithm>
#include <map>

#include "runtime/data/open_samples.h"
#include "tests/data/token_files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using Ids = std::vector<std::int32_t>;
constexpr std::int64_t block = 3;

struct Batch {
  Ids tokens;
  Ids labels;
  std::int64_t first = 0;
};

Batch empty_batch(std::int64_t sequences) {
  const auto size = static_cast<std::size_t>(sequences * block);
  return {Ids(size), Ids(size), 0};
}

Batch load(const data::BatchLoader& loader,
           std::int64_t sequences,
           std::int64_t step,
           std::int64_t micro) {
  Batch batch = empty_batch(sequences);
  batch.first = loader.fill(step, micro, {batch.tokens, batch.labels});
  return batch;
}

/// A stream of the tokens 0, 1, 2 ...: sample k starts with token 3k.
struct Counting {
  explicit Counting(std::int32_t count)
      : samples(data::open_samples(write_file(directory.path() / "t.bin", counting_tokens(count)),
                                   *data::make_encoder("byte"),
                                   {.sizes = {block}, .vocabulary = 65536})) {}
  TempDir directory;
  std::unique_ptr<data::SampleSource> samples;
};

/// First token of every sequence of one step, by its share in the global batch.
std::map<std::int64_t, std::int32_t> global_batch(const data::SampleSource& samples,
                                                  std::int64_t world,
                                                  std::int64_t micro_batch,
                                                  std::int64_t step) {
  std::map<std::int64_t, std::int32_t> places;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    const data::BatchLoader loader(samples,
                                   {.micro_batch = micro_batch, .rank = rank, .world = world},
                                   {.global_batch = 12, .shuffle = true, .seed = 5});
    for (std::int64_t micro = 0; micro < 12 / (world * micro_batch); ++micro) {
      const Batch batch = load(loader, micro_batch, step, micro);
      for (std::int64_t i = 0; i < micro_batch; ++i) {
        places.emplace(batch.first + i, batch.tokens[static_cast<std::size_t>(i * block)]);
      }
    }
  }
  return places;
}

}  // namespace

TEST_CASE("BatchLoader: labels are the tokens shifted by one", "[data][loader]") {
  const Counting counting(3 * 10 + 1);
  const data::BatchLoader loader(*counting.samples, {.micro_batch = 2},
                                 {.global_batch = 4, .shuffle = false});
  CHECK(loader.order().steps_per_epoch() == 3);
  const Batch first = load(loader, 2, 0, 0);
  CHECK(first.tokens == Ids{0, 1, 2, 3, 4, 5});
  CHECK(first.labels == Ids{1, 2, 3, 4, 5, 6});
  CHECK(first.first == 0);
  const Batch second = load(loader, 2, 1, 1);
  CHECK(second.tokens == Ids{18, 19, 20, 21, 22, 23});
  CHECK(second.first == 2);
  CHECK(load(loader, 2, 3, 0).tokens == first.tokens);
}

TEST_CASE("BatchLoader: ranks and micro steps tile the global batch", "[data][loader]") {
  const Counting counting(3 * 2 * 2 + 1);
  const data::BatchLoader loader(*counting.samples, {.micro_batch = 1, .rank = 1, .world = 2},
                                 {.global_batch = 4, .shuffle = false});
  CHECK(load(loader, 1, 0, 0).first == 1);
  CHECK(load(loader, 1, 0, 1).first == 3);
  CHECK(load(loader, 1, 0, 1).tokens == Ids{9, 10, 11});
}

TEST_CASE("BatchLoader: a step is the same for every split", "[data][loader]") {
  const Counting counting(3 * 30 + 2);
  for (const std::int64_t step : {0, 1, 2, 7}) {
    const auto whole = global_batch(*counting.samples, 1, 12, step);
    REQUIRE(whole.size() == 12);
    for (const auto& [world, micro] : std::vector<std::pair<int, int>>{
             {1, 1}, {1, 4}, {2, 2}, {2, 6}, {3, 2}, {3, 4}, {4, 3}, {6, 1}, {12, 1}}) {
      CAPTURE(step, world, micro);
      CHECK(global_batch(*counting.samples, world, micro, step) == whole);
    }
  }
}

TEST_CASE("BatchLoader: too little data is refused", "[data][loader]") {
  const data::LoaderShare share{.micro_batch = 2};
  CHECK_THAT(error_of([] { const Counting three(3); }),
             Catch::Matchers::EndsWith(
                 "t.bin: 3 tokens are too few for one sample of block_size 3, which takes 4"));
  const Counting four(4);
  CHECK(four.samples->samples() == 1);
  CHECK_THAT(error_of([&] {
               data::BatchLoader(*four.samples, share, {.global_batch = 2, .drop_last = true});
             }),
             Catch::Matchers::StartsWith(
                 "the training data holds 1 samples, fewer than the 2 of one step"));
}

TEST_CASE("BatchLoader: no label counts after the last sample of an epoch", "[data][loader]") {
  const Counting counting(3 * 7 + 1);  // the second step of an epoch has the sample 6 alone
  for (const std::int64_t rank : {0, 1}) {
    const data::BatchLoader loader(*counting.samples, {.micro_batch = 1, .rank = rank, .world = 2},
                                   {.global_batch = 6, .shuffle = false});
    CHECK(loader.micro_steps(0) == 3);
    REQUIRE(loader.micro_steps(1) == 1);
    const Batch last = load(loader, 1, 1, 0);
    CHECK(last.tokens == (rank == 0 ? Ids{18, 19, 20} : Ids{0, 0, 0}));
    CHECK(last.labels == (rank == 0 ? Ids{19, 20, 21}
                                    : Ids{dstrain::ignored_label, dstrain::ignored_label,
                                          dstrain::ignored_label}));
    // 4 micro steps an epoch, as Hugging Face counts: ceil(7 samples / 2 at a time).
    CHECK(loader.epochs_after(1) == 0.75);
    CHECK(loader.epochs_after(2) == 1);
    CHECK(loader.epochs_after(3) == 1.75);
  }
}

TEST_CASE("EvaluationLoader: every sample appears once and the rest is padding", "[data][loader]") {
  const Counting counting(3 * 7 + 3);  // seven samples and two tokens over
  const std::int64_t world = GENERATE(1, 2, 3, 8);
  const std::int64_t sequences = GENERATE(1, 2, 5);
  CAPTURE(world, sequences);
  Ids starts;
  std::int64_t padding = 0;
  std::int64_t rows = 0;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    const data::EvaluationLoader loader(*counting.samples,
                                        {.micro_batch = sequences, .rank = rank, .world = world});
    for (std::int64_t b = 0; b < loader.batches(); ++b) {
      Batch batch = empty_batch(sequences);
      loader.fill(b, {batch.tokens, batch.labels});
      for (std::size_t i = 0; i < batch.tokens.size(); i += block, ++rows) {
        const bool padded = batch.labels[i] == dstrain::ignored_label;
        for (std::size_t t = i; t < i + block; ++t) {
          if (batch.labels[t] != (padded ? dstrain::ignored_label : batch.tokens[t] + 1)) FAIL(t);
        }
        if (padded)
          ++padding;
        else
          starts.push_back(batch.tokens[i]);
      }
    }
  }
  std::sort(starts.begin(), starts.end());
  CHECK(starts == Ids{0, 3, 6, 9, 12, 15, 18});
  CHECK(padding == rows - 7);
  CHECK(rows - 7 < world * sequences);
}

TEST_CASE("EvaluationLoader: a range of the samples", "[data][loader]") {
  const Counting counting(3 * 7 + 3);
  const auto starts_of = [&](data::SampleRange range) {
    const data::EvaluationLoader loader(*counting.samples, {.micro_batch = 2}, range);
    Ids starts;
    for (std::int64_t b = 0; b < loader.batches(); ++b) {
      Batch batch = empty_batch(2);
      loader.fill(b, {batch.tokens, batch.labels});
      for (std::size_t i = 0; i < batch.tokens.size(); i += block) {
        if (batch.labels[i] != dstrain::ignored_label) starts.push_back(batch.tokens[i]);
      }
    }
    return starts;
  };
  CHECK(starts_of({0, 3}) == Ids{0, 3, 6});
  CHECK(starts_of({4, 2}) == Ids{12, 15});
  CHECK(starts_of({5, 100}) == Ids{15, 18});
}

TEST_CASE("BatchLoader: fewer samples make a shorter epoch", "[data][loader]") {
  const Counting counting(3 * 40 + 1);
  const data::LoaderShare share{.micro_batch = 4};
  const data::BatchLoader all(*counting.samples, share, {.global_batch = 4, .seed = 5});
  const data::BatchLoader some(*counting.samples, share,
                               {.samples = 13, .global_batch = 4, .seed = 5});
  CHECK(all.order().steps_per_epoch() == 10);
  REQUIRE(some.order().steps_per_epoch() == 4);
  for (std::int64_t step = 0; step < 9; ++step) {
    const Batch batch = load(some, 4, step, 0);
    CHECK(*std::max_element(batch.tokens.begin(), batch.tokens.end()) < 3 * 13);
  }
}

}  // namespace dstrain::test
