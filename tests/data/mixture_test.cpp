// Mixtures of files: how often each is seen, in what order, and what a sample is.
#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/data/mixture_samples.h"
#include "runtime/data/open_samples.h"
#include "runtime/data/text_encoder.h"
#include "tests/data/token_files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using data::MixtureOrder;
using data::MixturePart;
using data::MixtureSamples;
using data::MixtureShare;
using data::SampleRange;
using data::SampleSource;
using Counts = std::vector<std::int64_t>;

using Random = std::mt19937_64;

std::int64_t below(Random& random, std::int64_t bound) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
}

/// Weights over some four orders of magnitude, and sizes over three.
std::vector<MixtureShare> random_shares(Random& random) {
  std::vector<MixtureShare> shares(static_cast<std::size_t>(1 + below(random, 9)));
  for (auto& [samples, weight] : shares) {
    samples = 1 + below(random, std::int64_t{1} << below(random, 9));
    weight = std::exp(std::uniform_real_distribution<double>(-4, 4)(random));
  }
  return shares;
}

double sum_of(const std::vector<MixtureShare>& shares) {
  double sum = 0;
  for (const MixtureShare& share : shares) sum += share.weight;
  return sum;
}

/// The order by its definition: all samples, sorted by their times.
std::vector<std::pair<std::size_t, std::int64_t>> sorted_by_time(const Counts& counts) {
  struct Timed {
    std::size_t part;
    std::int64_t sample;
  };
  std::vector<Timed> all;
  for (std::size_t part = 0; part < counts.size(); ++part) {
    for (std::int64_t k = 0; k < counts[part]; ++k) all.push_back({part, k});
  }
  std::ranges::stable_sort(all, [&](const Timed& one, const Timed& two) {
    return (2 * one.sample + 1) * counts[two.part] < (2 * two.sample + 1) * counts[one.part];
  });
  std::vector<std::pair<std::size_t, std::int64_t>> places;
  for (const Timed& timed : all) places.emplace_back(timed.part, timed.sample);
  return places;
}

/// The furthest that a prefix of an order is from the parts' shares, in samples.
template <class PartAt>
double unevenness(const Counts& counts, std::int64_t samples, PartAt part_at) {
  Counts seen(counts.size());
  double worst = 0;
  for (std::int64_t p = 0; p < samples; ++p) {
    ++seen[part_at(p)];
    for (std::size_t part = 0; part < counts.size(); ++part) {
      const double share = static_cast<double>(counts[part]) / static_cast<double>(samples);
      worst = std::max(
          worst, std::abs(static_cast<double>(seen[part]) - share * static_cast<double>(p + 1)));
    }
  }
  return worst;
}

/// The parts in Megatron's order (build_blending_indices): next comes the one that lags most.
std::vector<std::size_t> greedy_order(const Counts& counts, std::int64_t samples) {
  Counts seen(counts.size());
  std::vector<std::size_t> order;
  for (std::int64_t p = 0; p < samples; ++p) {
    const auto lag = [&](std::size_t part) {
      const double share = static_cast<double>(counts[part]) / static_cast<double>(samples);
      return share * std::max(static_cast<double>(p), 1.0) - static_cast<double>(seen[part]);
    };
    std::size_t most = 0;
    for (std::size_t part = 1; part < counts.size(); ++part) {
      if (lag(part) > lag(most)) most = part;
    }
    ++seen[most];
    order.push_back(most);
  }
  return order;
}

/// A source of `samples` samples whose tokens are `first` and up.
class NumberedSamples : public SampleSource {
 public:
  NumberedSamples(const std::string& path, std::int64_t samples, std::int32_t first)
      : SampleSource(path, {1}), samples_(samples), first_(first) {
    add_note("a note of " + path);
  }
  [[nodiscard]] std::int64_t bytes() const override { return 10 * samples_; }
  [[nodiscard]] std::string digest() const override { return fmt::format("d{}", first_); }
  [[nodiscard]] bool is_text() const override { return first_ == 0; }
  [[nodiscard]] std::int64_t samples() const override { return samples_; }
  void read(std::int64_t sample, const data::SampleRows& row) const override {
    row.tokens[0] = first_ + static_cast<std::int32_t>(sample);
    row.labels[0] = -row.tokens[0];
  }

 private:
  std::int64_t samples_;
  std::int32_t first_;
};

MixturePart part(const std::string& path,
                 std::int64_t samples,
                 std::int32_t first,
                 double weight,
                 SampleRange range = {}) {
  return {std::make_shared<NumberedSamples>(path, samples, first), range, weight};
}

std::vector<std::int32_t> tokens_of(const SampleSource& source) {
  std::vector<std::int32_t> all;
  std::vector<std::int32_t> token(1);
  std::vector<std::int32_t> label(1);
  for (std::int64_t k = 0; k < source.samples(); ++k) {
    source.read(k, {token, label});
    all.push_back(label[0] == -token[0] ? token[0] : -1);
  }
  return all;
}

using Tokens = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("MixtureCounts: an epoch is the shortest that contains each sample", "[data][mixture]") {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const std::vector<MixtureShare> shares = random_shares(random);
    const Counts counts = data::mixture_counts(shares);
    REQUIRE(counts.size() == shares.size());
    const double sum = sum_of(shares);
    double samples = 0;
    for (const std::int64_t count : counts) samples += static_cast<double>(count);
    bool some_once = false;
    for (std::size_t k = 0; k < shares.size(); ++k) {
      CAPTURE(i, k, shares[k].samples, shares[k].weight, counts[k]);
      CHECK(counts[k] >= shares[k].samples);
      some_once = some_once || counts[k] == shares[k].samples;
      const double share = shares[k].weight / sum;
      const double most = 0.5 + share * static_cast<double>(shares.size()) / 2 + 1e-6;
      CHECK(std::abs(static_cast<double>(counts[k]) - share * samples) <= most);
    }
    CHECK(some_once);
  }
  using Shares = std::vector<MixtureShare>;
  CHECK(data::mixture_counts(Shares{{5, 0.1}}) == Counts{5});
  CHECK(data::mixture_counts(Shares{{10, 0.5}, {10, 0.5}}) == Counts{10, 10});
  CHECK(data::mixture_counts(Shares{{100, 0.25}, {10, 0.75}}) == Counts{100, 299});
  CHECK_THROWS_WITH(
      data::mixture_counts(Shares{{1'000'000, 1e-12}, {1, 1}}),
      Catch::Matchers::ContainsSubstring("the weights of the files differ too much") &&
          Catch::Matchers::ContainsSubstring("1e+18 samples"));
}

TEST_CASE("MixtureOrder: is all samples sorted by their times", "[data][mixture]") {
  Random random(2);
  for (int i = 0; i < 300; ++i) {
    const Counts counts = data::mixture_counts(random_shares(random));
    const MixtureOrder order(counts);
    if (order.samples() > 3000) continue;
    const auto places = sorted_by_time(counts);
    bool same = true;
    for (std::int64_t p = 0; p < order.samples(); ++p) {
      const auto [part, sample] = order(p);
      same = same && places[static_cast<std::size_t>(p)] == std::pair(part, sample);
    }
    CAPTURE(i, counts);
    CHECK(same);
  }
}

TEST_CASE("MixtureOrder: is as even as documented and as Megatron's", "[data][mixture]") {
  Random random(3);
  double ours = 0;
  double greedy = 0;
  for (int i = 0; i < 200; ++i) {
    const Counts counts = data::mixture_counts(random_shares(random));
    const MixtureOrder order(counts);
    if (order.samples() > 2000) continue;
    const auto parts = static_cast<double>(counts.size());
    const double largest =
        static_cast<double>(std::ranges::max(counts)) / static_cast<double>(order.samples());
    const double worst =
        unevenness(counts, order.samples(), [&](std::int64_t p) { return order(p).part; });
    CAPTURE(i, counts);
    CHECK(worst < 0.5 + largest * parts / 2 + 1e-9);
    const std::vector<std::size_t> other = greedy_order(counts, order.samples());
    ours = std::max(ours, worst);
    greedy = std::max(greedy, unevenness(counts, order.samples(), [&](std::int64_t p) {
                        return other[static_cast<std::size_t>(p)];
                      }));
  }
  CAPTURE(ours, greedy);
  CHECK(ours < greedy + 0.5);
}

TEST_CASE("MixtureOrder: large mixtures are looked up like small ones", "[data][mixture]") {
  // Counts of which the order repeats itself: 2^40 times that of 3 and 5 and 1.
  const Counts small{3, 5, 1};
  Counts large = small;
  for (std::int64_t& count : large) count <<= 40;
  const MixtureOrder order(small);
  const MixtureOrder repeated(large);
  for (const std::int64_t round : {std::int64_t{0}, std::int64_t{1}, (std::int64_t{1} << 40) - 1}) {
    for (std::int64_t p = 0; p < order.samples(); ++p) {
      const auto [part, sample] = order(p);
      const auto found = repeated(round * order.samples() + p);
      CAPTURE(round, p);
      CHECK(found.part == part);
      CHECK(found.sample == round * small[part] + sample);
    }
  }
}

TEST_CASE("MixtureSamples: parts come at their weights and begin again", "[data][mixture]") {
  const MixtureSamples mixture({part("x/a", 6, 0, 3), part("x/b", 1, 100, 1)});
  CHECK(tokens_of(mixture) == Tokens{0, 1, 100, 2, 3, 4, 100, 5});
  CHECK(mixture.path() == "0.75 x/a 0.25 x/b");
  CHECK(mixture.name() == "0.75 a 0.25 b");
  CHECK(mixture.mixture() == "6 of samples 0 to 6 in 60 bytes, 2 of samples 0 to 1 in 10 bytes");
  CHECK(mixture.bytes() == 70);
  CHECK(mixture.is_text());
  CHECK(mixture.notes() ==
        std::vector<std::string>{"a note of x/a", "a note of x/b",
                                 "a mixture of 2 files: an epoch of 8 samples goes through x/a "
                                 "1.00 times, x/b 2.00 times"});
}

TEST_CASE("MixtureSamples: without weights each sample comes once", "[data][mixture]") {
  Random random(4);
  for (int i = 0; i < 50; ++i) {
    std::vector<MixturePart> parts;
    Tokens expected;
    for (std::int32_t k = 0; k < 1 + below(random, 6); ++k) {
      const std::int64_t samples = 1 + below(random, 60);
      const SampleRange range{below(random, samples), 1 + below(random, samples)};
      parts.push_back(part("f", samples, 1000 * k, 0, range));
      for (std::int64_t j = 0; j < std::min(range.count, samples - range.first); ++j) {
        expected.push_back(static_cast<std::int32_t>(1000 * k + range.first + j));
      }
    }
    Tokens found = tokens_of(MixtureSamples(parts));
    std::ranges::sort(found);
    CHECK(found == expected);
  }
  const MixtureSamples mixture({part("a", 2, 1, 0), part("b", 2, 5, 0)});
  CHECK(mixture.path() == "a b");
  CHECK_FALSE(mixture.is_text());
  CHECK(mixture.notes().back() ==
        "a mixture of 2 files: an epoch has each of their 4 samples once");
}

TEST_CASE("MixtureSamples: files of any kind can be mixed and a single one is unchanged",
          "[data][mixture]") {
  const TempDir folder;
  const auto open = [&](const std::string& name, const std::string& bytes) {
    return std::shared_ptr<const SampleSource>(
        data::open_samples(write_file(folder.path() / name, bytes), *data::make_encoder("byte"),
                           {.sizes = {4}, .vocabulary = 256, .cache = folder.path() / "cache"}));
  };
  const auto text = open("a.txt", "the quick brown fox");
  const auto records = open("b.jsonl", "{\"prompt\": \"ab\", \"completion\": \"cd\"}\n");
  const auto ids = open("c.bin", counting_tokens(9));
  const MixtureSamples mixture({{text, {}, 0.5}, {records, {}, 0.25}, {ids, {}, 0.25}});
  CHECK(mixture.samples() == 8);
  CHECK(mixture.block_size() == 4);
  std::vector<std::vector<std::int32_t>> seen;
  const auto row = [](const SampleSource& source, std::int64_t sample) {
    std::vector<std::int32_t> values(8);
    source.read(sample, {std::span(values).first(4), std::span(values).last(4)});
    return values;
  };
  for (std::int64_t k = 0; k < mixture.samples(); ++k) seen.push_back(row(mixture, k));
  for (const auto& source : {text, records, ids}) {
    const MixtureSamples alone({{source, {}, 0.3}});
    REQUIRE(alone.samples() == source->samples());
    for (std::int64_t k = 0; k < source->samples(); ++k) {
      CHECK(row(alone, k) == row(*source, k));
      CHECK(std::ranges::count(seen, row(*source, k)) ==
            8 / (source == text ? 2 : 4) / source->samples());
    }
  }
}

}  // namespace dstrain::test
