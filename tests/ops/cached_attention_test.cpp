// Attention to a cache, against attention to the whole sequences.
#include "runtime/ops/cached_attention.h"

#include <array>
#include <cmath>

#include "runtime/device/cpu_stream.h"
#include "runtime/numeric/philox.h"
#include "runtime/ops/attention.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

struct Case {
  ops::AttentionSizes sizes;  ///< of a call; keys: the positions of the cache
  ops::AttentionRule rule;
  std::vector<std::int64_t> past;  ///< by sequence
  std::int64_t rows;               ///< of a slot
  DType dtype;
};

ops::Rotary turning(std::int64_t dims) {
  ops::Rotary turns{.dims = dims, .magnitude = 1.5F};
  for (std::size_t i = 0; i < static_cast<std::size_t>(dims) / 2; ++i) {
    turns.frequencies[i] = std::pow(0.6F, static_cast<float>(i));
  }
  return turns;
}

HostView space(std::vector<std::byte>& memory, Bytes bytes) {
  memory.resize(static_cast<std::size_t>(bytes) + 64);
  void* start = memory.data();
  std::size_t left = memory.size();
  std::align(64, 1, start, left);
  return {start, DType::u8, {bytes}};
}

/// Rows [begin, begin + count) of a sequence of a (B L, columns) tensor, for each sequence.
test::TypedValues rows_of(const std::vector<float>& all,
                          const std::vector<std::int64_t>& begin,
                          std::int64_t length,
                          std::int64_t count,
                          std::int64_t columns,
                          DType dtype) {
  std::vector<float> some;
  for (std::size_t sequence = 0; sequence < begin.size(); ++sequence) {
    const auto first =
        all.begin() + (static_cast<std::int64_t>(sequence) * length + begin[sequence]) * columns;
    some.insert(some.end(), first, first + count * columns);
  }
  return {some, dtype};
}

/// Sequences of random values, as many positions as the longest needs.
class Sequences {
 public:
  explicit Sequences(const Case& c)
      : c_(c),
        length_(*std::max_element(c.past.begin(), c.past.end()) + c.sizes.tokens),
        wide_(c.sizes.heads * c.sizes.head_size),
        narrow_(c.sizes.kv_heads * c.sizes.head_size),
        query_(values(wide_, 1)),
        key_(values(narrow_, 2)),
        value_(values(narrow_, 3)),
        bias_(test::random_values(c.rule.buckets.count * c.sizes.heads, 4), c.dtype) {}

  /// Of attention to the whole sequences, the outputs of the last tokens.
  std::vector<float> expected() {
    const std::int64_t rows = c_.sizes.sequences * length_;
    ops::AttentionSizes sizes = c_.sizes;
    sizes.tokens = sizes.keys = length_;
    test::TypedValues query(query_, c_.dtype);
    test::TypedValues key(key_, c_.dtype);
    test::TypedValues value(value_, c_.dtype);
    test::TypedValues output(std::vector<float>(static_cast<std::size_t>(rows * wide_)), c_.dtype);
    std::vector<float> logsumexp(static_cast<std::size_t>(rows * sizes.heads));
    ops::attention_forward(
        {.sizes = sizes,
         .rule = c_.rule,
         .query = query.view({rows, wide_}),
         .key = key.view({rows, narrow_}),
         .value = value.view({rows, narrow_}),
         .bias = bias(),
         .output = output.view({rows, wide_}),
         .logsumexp = HostView(logsumexp, {sizes.sequences, sizes.heads, length_}),
         .workspace =
             space(memory_, ops::attention_forward_workspace(sizes, c_.rule, DeviceKind::cpu))},
        stream_);
    return rows_of(output.read(), c_.past, length_, c_.sizes.tokens, wide_, DType::f32).read();
  }

  /// The same by a cache to which all but the last tokens were appended in pieces.
  std::vector<float> cached() {
    const auto slots = c_.sizes.sequences + 1;
    const auto numel = static_cast<std::size_t>(slots * c_.rows * narrow_);
    const std::vector<float> garbage(numel, 1e6F);
    test::TypedValues keys(garbage, c_.dtype);
    test::TypedValues values(garbage, c_.dtype);
    const ops::KeyValueCache cache{keys.view({slots, c_.rows, narrow_}),
                                   values.view({slots, c_.rows, narrow_})};
    for (std::int64_t i = 0; i < c_.sizes.sequences; ++i) {
      constexpr std::int64_t piece = 5;
      const std::int64_t past = c_.past[static_cast<std::size_t>(i)];
      for (std::int64_t begin = 0; begin < past; begin += piece) {
        append(cache, {i}, {begin}, std::min(piece, past - begin));
      }
    }
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < c_.sizes.sequences; ++i) all.push_back(i);
    append(cache, all, c_.past, c_.sizes.tokens);
    test::TypedValues query = rows_of(query_, c_.past, length_, c_.sizes.tokens, wide_, c_.dtype);
    const std::int64_t rows = c_.sizes.sequences * c_.sizes.tokens;
    test::TypedValues output(std::vector<float>(static_cast<std::size_t>(rows * wide_)), c_.dtype);
    Places places(all, c_.past, c_.sizes.tokens);
    ops::cached_attention({.sizes = c_.sizes,
                           .rule = c_.rule,
                           .query = query.view({rows, wide_}),
                           .cache = cache,
                           .places = places.views(),
                           .bias = bias(),
                           .output = output.view({rows, wide_}),
                           .workspace = space(memory_, ops::cached_attention_workspace(
                                                           c_.sizes, c_.rule, DeviceKind::cpu))},
                          stream_);
    return output.read();
  }

 private:
  struct Places {
    Places(const std::vector<std::int64_t>& sequences,
           const std::vector<std::int64_t>& past,
           std::int64_t tokens) {
      for (std::size_t i = 0; i < sequences.size(); ++i) {
        slot.push_back(static_cast<std::int32_t>(sequences[i] + 1));  // not the first one
        before.push_back(static_cast<std::int32_t>(past[i]));
        length.push_back(static_cast<std::int32_t>(past[i] + tokens));
      }
    }
    ops::CachePlaces views() {
      const Shape shape{std::ssize(slot)};
      return {HostView(slot, shape), HostView(before, shape), HostView(length, shape)};
    }
    std::vector<std::int32_t> slot, before, length;
  };

  [[nodiscard]] std::vector<float> values(std::int64_t columns, std::uint64_t seed) const {
    return test::random_values(c_.sizes.sequences * length_ * columns, seed);
  }
  TensorView bias() {
    if (!c_.rule.buckets.active()) return {};
    return bias_.view({c_.rule.buckets.count, c_.sizes.heads});
  }
  /// Stores `count` positions of some sequences from `begin` on.
  void append(const ops::KeyValueCache& cache,
              const std::vector<std::int64_t>& sequences,
              const std::vector<std::int64_t>& begin,
              std::int64_t count) {
    std::vector<std::int64_t> places;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      places.push_back(sequences[i] * length_ + begin[i]);
    }
    const auto rows = std::ssize(sequences) * count;
    test::TypedValues key = pick(key_, places, count);
    test::TypedValues value = pick(value_, places, count);
    Places at(sequences, begin, count);
    ops::append_cache({.head_size = c_.sizes.head_size,
                       .rotary = c_.rule.rotary,
                       .key = key.view({rows, narrow_}),
                       .value = value.view({rows, narrow_}),
                       .cache = cache,
                       .places = at.views()},
                      stream_);
  }
  [[nodiscard]] test::TypedValues pick(const std::vector<float>& all,
                                       const std::vector<std::int64_t>& rows,
                                       std::int64_t count) const {
    std::vector<float> some;
    for (const std::int64_t row : rows) {
      const auto first = all.begin() + row * narrow_;
      some.insert(some.end(), first, first + count * narrow_);
    }
    return {some, c_.dtype};
  }

  const Case& c_;
  std::int64_t length_;
  std::int64_t wide_;
  std::int64_t narrow_;
  std::vector<float> query_, key_, value_;
  test::TypedValues bias_;
  std::vector<std::byte> memory_;
  CpuStream stream_{CpuStream::Mode::inline_on_caller};
};

Case random_case(std::uint64_t seed) {
  std::uint64_t drawn = 0;
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(
        uniform_below({.seed = seed, .index = drawn++}, static_cast<std::uint64_t>(bound)));
  };
  constexpr std::array<std::int64_t, 6> head_sizes{3, 8, 24, 64, 65, 128};
  Case c{};
  const std::int64_t kv_heads = 1 + below(2);
  const std::int64_t tokens = below(2) == 0 ? 1 + below(3) : 1 + below(150);
  c.sizes = {.sequences = 1 + below(3),
             .tokens = tokens,
             .keys = 0,
             .heads = kv_heads * (1 + below(3)),
             .kv_heads = kv_heads,
             .head_size = head_sizes[static_cast<std::size_t>(below(6))]};
  for (std::int64_t i = 0; i < c.sizes.sequences; ++i) c.past.push_back(below(200));
  c.sizes.keys = *std::max_element(c.past.begin(), c.past.end()) + tokens + below(30);
  c.rule.divisor = 3;
  if (below(2) == 0) c.rule.window = 1 + below(140);
  if (below(2) == 0) c.rule.rotary = turning(std::min<std::int64_t>(c.sizes.head_size / 2 * 2, 16));
  if (c.rule.window == 0 && below(3) == 0) c.rule.buckets = {8, 40, false};
  const std::int64_t ring = round_up(c.rule.window - 1 + std::max<std::int64_t>(tokens, 5), 64);
  c.rows = c.rule.window > 0 ? std::min(c.sizes.keys, ring) : c.sizes.keys;
  constexpr std::array dtypes{DType::f32, DType::bf16, DType::f16};
  c.dtype = dtypes[static_cast<std::size_t>(below(3))];
  return c;
}

}  // namespace

TEST_CASE("Cached attention: outputs are those of whole sequences", "[ops][attention]") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    const Case c = random_case(seed);
    CAPTURE(seed, c.sizes.tokens, c.rule.window, c.rows, c.rule.buckets.count, name_of(c.dtype));
    Sequences sequences(c);
    // Keys of a cache are rounded after their rotation.
    const test::Tolerance tolerance =
        c.dtype == DType::f32 ? test::Tolerance{2e-5, 2e-5} : test::Tolerance{0.04, 0.03};
    CHECK(test::difference(sequences.cached(), sequences.expected(), tolerance) == "");
  }
}

TEST_CASE("Cached attention: a sequence has the same bits beside others", "[ops][attention]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Case c = random_case(seed);
    CAPTURE(seed);
    const std::vector<float> all = Sequences(c).cached();
    const std::int64_t longest = *std::max_element(c.past.begin(), c.past.end());
    if (c.past.front() != longest) continue;  // else its random values are others
    c.past.resize(1);
    c.sizes.sequences = 1;
    const std::vector<float> alone = Sequences(c).cached();
    CHECK(std::equal(alone.begin(), alone.end(), all.begin()));
  }
}

}  // namespace dstrain
