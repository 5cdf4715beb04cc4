#include "runtime/engine/token_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/numeric/philox.h"
#include "runtime/ops/fast_exp.h"

namespace dstrain::engine {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

/// Scores this far below the largest share the last bucket: their weights are below 2e-14.
constexpr float bucket_range_max = 32;
constexpr float bucket_range_min = 1e-3F;

/// Tokens that are looked at together.
constexpr std::size_t block_size = 64;

// Vectors of the size that every x86-64 has, so that all machines choose the same. They are spelled
// out because the compiler must neither reorder comparisons of floats nor drop branches by itself.
typedef float Vector __attribute__((vector_size(16)));
typedef float VectorInMemory __attribute__((vector_size(16), aligned(4), may_alias));
typedef std::uint32_t Unsigned __attribute__((vector_size(16)));
typedef std::int32_t Integer __attribute__((vector_size(16)));
constexpr std::size_t lanes = 4;

Vector load(const float* values) {
  return *reinterpret_cast<const VectorInMemory*>(values);
}

/// Returns the largest of `sign` times the values.
float largest_of(std::span<const float> values, float sign) {
  Vector lane_largest = Vector{} + minus_infinity;
  std::size_t i = 0;
  for (; i + lanes <= values.size(); i += lanes) {
    const Vector four = load(&values[i]) * sign;
    lane_largest = four > lane_largest ? four : lane_largest;
  }
  float largest = minus_infinity;
  for (std::size_t lane = 0; lane < lanes; ++lane) largest = std::max(largest, lane_largest[lane]);
  for (; i < values.size(); ++i) largest = std::max(largest, values[i] * sign);
  return largest;
}

/// The sum of the weights of all tokens: their probabilities divided by the largest one.
double total_weight(std::span<const float> logits, float largest) {
  double total = 0;
  for (std::size_t begin = 0; begin < logits.size(); begin += block_size) {
    const auto block = logits.subspan(begin, std::min(block_size, logits.size() - begin));
    Vector sums{};
    std::size_t i = 0;
    for (; i + lanes <= block.size(); i += lanes) {
      sums += ops::fast_exp2_of<Unsigned>((load(&block[i]) - largest) * ops::log2_e);
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) total += static_cast<double>(sums[lane]);
    for (; i < block.size(); ++i) {
      total += static_cast<double>(ops::fast_exp2((block[i] - largest) * ops::log2_e));
    }
  }
  return total;
}

/// Logits that are not finite have no likeliest token.
void check_finite(std::span<const float> logits, std::int64_t token) {
  constexpr std::int32_t magnitude = 0x7FFFFFFF;
  constexpr std::int32_t infinity = 0x7F800000;
  std::int32_t largest = 0;
  for (const float logit : logits) {
    largest = std::max(largest, std::bit_cast<std::int32_t>(logit) & magnitude);
  }
  if (largest < infinity) return;
  const auto bad = std::ranges::find_if(logits, [](float logit) { return !std::isfinite(logit); });
  fail(ErrorCode::diverged,
       "the logits of new token {} hold {} (of id {}): the model's weights, or what it computes of "
       "them, are not finite; take an older checkpoint",
       token + 1, *bad, bad - logits.begin());
}

}  // namespace

double choice_draw(std::uint64_t seed, std::uint64_t variant, std::int64_t index) {
  DSTRAIN_CHECK(variant <= std::numeric_limits<std::uint32_t>::max(), "variant {}", variant);
  const auto words = philox({.seed = seed,
                             .purpose = RandomPurpose::sample,
                             .stream = static_cast<std::uint32_t>(variant),
                             .index = static_cast<std::uint64_t>(index)});
  const std::uint64_t bits = (std::uint64_t{words[0]} << 32U | words[1]) >> 12U;
  return (static_cast<double>(bits) + 0.5) * 0x1.0p-52;
}

TokenChooser::TokenChooser(ChoiceOptions options, std::int64_t vocabulary)
    : options_(std::move(options)) {
  DSTRAIN_CHECK(options_.temperature > 0, "temperature {}", options_.temperature);
  DSTRAIN_CHECK(options_.repetition_penalty > 0, "penalty {}", options_.repetition_penalty);
  DSTRAIN_CHECK(options_.top_k >= 0, "top_k {}", options_.top_k);
  if (options_.top_k >= vocabulary) options_.top_k = 0;
  if (options_.repetition_penalty != 1) is_seen_.resize(static_cast<std::size_t>(vocabulary));
}

std::int32_t TokenChooser::choose(std::span<float> logits,
                                  std::span<const std::int32_t> context,
                                  std::int64_t new_tokens,
                                  std::uint64_t variant) {
  const float largest = prepare(logits, context, new_tokens);
  if (!options_.do_sample) {
    return static_cast<std::int32_t>(std::ranges::find(logits, largest) - logits.begin());
  }
  const Cut kept = cut(logits, largest);
  return draw(kept, choice_draw(options_.seed, variant, new_tokens) * kept.mass);
}

std::vector<TokenChooser::Candidate> TokenChooser::candidates(std::span<float> logits,
                                                              std::span<const std::int32_t> context,
                                                              std::int64_t new_tokens) {
  const float largest = prepare(logits, context, new_tokens);
  const Cut kept = cut(logits, largest);
  std::vector<Candidate> found;
  for (int bucket = 0; bucket <= kept.last_bucket; ++bucket) {
    for (const Scored& each : gather_within(kept, bucket)) {
      found.push_back({each.token, static_cast<double>(weight(each.score)) / kept.mass});
    }
  }
  return found;
}

void TokenChooser::score(std::span<float> logits,
                         std::span<const std::int32_t> context,
                         std::int64_t new_tokens) {
  check_finite(logits, new_tokens);
  const float largest = largest_of(logits, 1);
  const auto log_total = static_cast<float>(std::log(total_weight(logits, largest)));
  for (float& logit : logits) logit = (logit - largest) - log_total;
  penalize(logits, context, new_tokens);
}

void TokenChooser::penalize(std::span<float> scores,
                            std::span<const std::int32_t> context,
                            std::int64_t new_tokens) {
  if (options_.repetition_penalty != 1) penalize_repetition(scores, context);
  if (new_tokens >= options_.min_new_tokens) return;
  for (const std::int32_t token : options_.end_tokens) {
    if (token >= 0 && token < std::ssize(scores)) {
      scores[static_cast<std::size_t>(token)] = minus_infinity;
    }
  }
}

void TokenChooser::penalize_repetition(std::span<float> scores,
                                       std::span<const std::int32_t> context) {
  const auto penalty = static_cast<float>(options_.repetition_penalty);
  for (const std::int32_t token : context) {
    const auto i = static_cast<std::size_t>(token);
    DSTRAIN_CHECK(i < is_seen_.size() && i < scores.size(), "token {}", token);
    if (std::exchange(is_seen_[i], 1) != 0) continue;
    scores[i] = scores[i] < 0 ? scores[i] * penalty : scores[i] / penalty;
  }
  for (const std::int32_t token : context) is_seen_[static_cast<std::size_t>(token)] = 0;
}

float TokenChooser::prepare(std::span<float> logits,
                            std::span<const std::int32_t> context,
                            std::int64_t new_tokens) {
  check_finite(logits, new_tokens);
  penalize(logits, context, new_tokens);
  if (options_.do_sample && options_.temperature != 1) {
    const auto temperature = static_cast<float>(options_.temperature);
    for (float& logit : logits) logit /= temperature;
  }
  const float largest = largest_of(logits, 1);
  if (!std::isfinite(largest)) {
    fail(ErrorCode::input,
         "new token {} cannot be chosen: temperature {}, repetition_penalty {} and min_new_tokens "
         "{} leave no finite score; change them",
         new_tokens + 1, options_.temperature, options_.repetition_penalty,
         options_.min_new_tokens);
  }
  return largest;
}

/// Collects the scores that reach a bar, which is the k-th of those collected so far. The bar rises
/// each time the collection has doubled, so that all of it takes linear time in any order.
void TokenChooser::keep_top_k(std::span<const float> scores) {
  const auto k = static_cast<std::size_t>(options_.top_k);
  kept_.clear();
  float bar = minus_infinity;
  std::size_t limit = std::max<std::size_t>(2 * k, block_size);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] < bar) continue;
    kept_.push_back({scores[i], static_cast<std::int32_t>(i)});
    if (kept_.size() < limit) continue;
    drop_below_kth();
    bar = kept_[k - 1].score;
    limit = std::max<std::size_t>(2 * kept_.size(), block_size);
  }
  drop_below_kth();
  kept_scores_.resize(kept_.size());
  kept_tokens_.resize(kept_.size());
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    kept_scores_[i] = kept_[i].score;
    kept_tokens_[i] = kept_[i].token;
  }
}

/// Leaves the k largest scores in `kept_`, the least of them in place k - 1, and its equals.
void TokenChooser::drop_below_kth() {
  const std::ptrdiff_t k = options_.top_k;
  std::ranges::nth_element(kept_, kept_.begin() + k - 1, std::greater<>(), &Scored::score);
  const float bar = kept_[static_cast<std::size_t>(k - 1)].score;
  const auto beyond = std::partition(kept_.begin() + k, kept_.end(),
                                     [bar](const Scored& each) { return each.score == bar; });
  kept_.erase(beyond, kept_.end());
}

TokenChooser::Cut TokenChooser::cut(std::span<const float> scores, float largest) {
  largest_ = largest;
  scores_ = scores;
  if (options_.top_k > 0) {
    keep_top_k(scores);
    scores_ = kept_scores_;
  }
  const float range = largest + largest_of(scores_, -1);
  bucket_scale_ =
      static_cast<float>(buckets) / std::clamp(range, bucket_range_min, bucket_range_max);
  gathered_ = -1;
  fill_buckets();
  return cut_at_top_p();
}

std::int32_t TokenChooser::bucket_of(float score) const {
  const float place = (largest_ - score) * bucket_scale_;
  return static_cast<std::int32_t>(std::min(place, static_cast<float>(buckets - 1)));
}

float TokenChooser::weight(float score) const {
  return ops::fast_exp2((score - largest_) * ops::log2_e);
}

void TokenChooser::fill_buckets() {
  bucket_mass_.fill(0);
  const auto min_weight = static_cast<float>(options_.min_p);
  double removed = 0;
  const Vector last = Vector{} + static_cast<float>(buckets - 1);
  const auto add = [&](float weight, std::int32_t bucket) {
    double& mass = weight < min_weight ? removed : bucket_mass_[static_cast<std::size_t>(bucket)];
    mass += static_cast<double>(weight);
  };
  std::size_t i = 0;
  for (; i + lanes <= scores_.size(); i += lanes) {
    const Vector score = load(&scores_[i]);
    const Vector weights = ops::fast_exp2_of<Unsigned>((score - largest_) * ops::log2_e);
    const Vector place = (largest_ - score) * bucket_scale_;
    const Integer bucket = __builtin_convertvector(place < last ? place : last, Integer);
    for (std::size_t lane = 0; lane < lanes; ++lane) add(weights[lane], bucket[lane]);
  }
  for (; i < scores_.size(); ++i) add(weight(scores_[i]), bucket_of(scores_[i]));
  total_ = removed;
  for (const double mass : bucket_mass_) total_ += mass;
}

/// top_p keeps a token if those before it have less than top_p of the total. The tokens that min_p
/// removes count for the total, because it follows top_p; they are missing at the end only, so
/// removing them first changes nothing else.
TokenChooser::Cut TokenChooser::cut_at_top_p() {
  const auto mass_of = [this](int bucket) {
    return bucket_mass_[static_cast<std::size_t>(bucket)];
  };
  int last = buckets - 1;
  while (last > 0 && mass_of(last) == 0) --last;
  Cut cut;
  if (options_.top_p >= 1) {
    for (int bucket = 0; bucket <= last; ++bucket) cut.mass += mass_of(bucket);
    return {.last_bucket = last, .count = all_of_bucket, .mass = cut.mass};
  }
  const double needed = options_.top_p * total_;
  while (cut.last_bucket < last && cut.mass + mass_of(cut.last_bucket) < needed) {
    cut.mass += mass_of(cut.last_bucket++);
  }
  gather(cut.last_bucket);
  do {  // at least one token stays
    cut.mass += static_cast<double>(weight(members_[cut.count++].score));
  } while (cut.count < members_.size() && cut.mass < needed);
  return cut;
}

void TokenChooser::gather(int bucket) {
  if (bucket == gathered_) return;
  gathered_ = bucket;
  members_.clear();
  const auto min_weight = static_cast<float>(options_.min_p);
  // The bounds are generous by a bucket: rounding may not put a token outside of them.
  const auto place = static_cast<float>(bucket);
  const float high = largest_ - (place - 1) / bucket_scale_;
  const float low = bucket == buckets - 1 ? minus_infinity : largest_ - (place + 2) / bucket_scale_;
  for (std::size_t begin = 0; begin < scores_.size(); begin += block_size) {
    const auto block = scores_.subspan(begin, std::min(block_size, scores_.size() - begin));
    int near = 0;
    for (const float score : block) near += score >= low && score <= high ? 1 : 0;
    if (near == 0) continue;
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (weight(block[i]) == 0 || weight(block[i]) < min_weight) continue;
      if (bucket_of(block[i]) != bucket) continue;
      const std::size_t token = begin + i;
      members_.push_back(
          {block[i], options_.top_k > 0 ? kept_tokens_[token] : static_cast<std::int32_t>(token)});
    }
  }
  std::ranges::sort(members_, [](const Scored& a, const Scored& b) {
    return a.score > b.score || (a.score == b.score && a.token < b.token);
  });
}

std::span<const TokenChooser::Scored> TokenChooser::gather_within(const Cut& cut, int bucket) {
  gather(bucket);
  const std::span<const Scored> all = members_;
  return bucket == cut.last_bucket ? all.first(std::min(cut.count, all.size())) : all;
}

std::int32_t TokenChooser::draw(const Cut& cut, double target) {
  double mass = 0;
  int bucket = 0;
  for (; bucket < cut.last_bucket; ++bucket) {
    const double next = mass + bucket_mass_[static_cast<std::size_t>(bucket)];
    if (next > target) break;
    mass = next;
  }
  const std::span<const Scored> members = gather_within(cut, bucket);
  for (const Scored& each : members) {
    mass += static_cast<double>(weight(each.score));
    if (mass > target) return each.token;
  }
  return members.back().token;  // by rounding alone
}

}  // namespace dstrain::engine
