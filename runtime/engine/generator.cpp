#include "runtime/engine/generator.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/numeric/philox.h"

namespace dstrain::engine {
namespace {

/// The ids of the `count` largest logits, largest first, lower ids first among equals.
std::vector<std::int32_t> largest(std::span<const float> logits, std::int64_t count) {
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto before = [&](std::int32_t a, std::int32_t b) {
    const float left = logits[static_cast<std::size_t>(a)];
    const float right = logits[static_cast<std::size_t>(b)];
    return left > right || (left == right && a < b);
  };
  std::partial_sort(ids.begin(), ids.begin() + count, ids.end(), before);
  ids.resize(static_cast<std::size_t>(count));
  return ids;
}

/// Logits that are not finite have no likeliest token.
void check_finite(std::span<const float> logits, std::int64_t token) {
  const auto bad = std::ranges::find_if(logits, [](float logit) { return !std::isfinite(logit); });
  if (bad == logits.end()) return;
  fail(ErrorCode::diverged,
       "the logits of new token {} hold {} (of id {}): the model's weights, or what it computes of "
       "them, are not finite; take an older checkpoint",
       token + 1, *bad, bad - logits.begin());
}

/// Keeps the first of descending weights that sum to top_p of the total, at least one. Returns
/// their sum.
double keep_nucleus(std::vector<double>& weights, double total, double top_p) {
  if (top_p >= 1) return total;
  double kept = weights.front();
  std::size_t count = 1;
  while (count < weights.size() && kept < top_p * total) kept += weights[count++];
  weights.resize(count);
  return kept;
}

}  // namespace

std::int32_t choose_token(std::span<const float> logits,
                          const SamplingOptions& options,
                          std::uint64_t position) {
  const auto vocabulary = static_cast<std::int64_t>(logits.size());
  if (!options.do_sample) return largest(logits, 1).front();
  const std::int64_t kept = options.top_k > 0 ? std::min(options.top_k, vocabulary) : vocabulary;
  const std::vector<std::int32_t> ids = largest(logits, kept);
  const auto logit = [&](std::int32_t id) {
    return static_cast<double>(logits[static_cast<std::size_t>(id)]);
  };
  std::vector<double> weights;
  double total = 0;
  for (const std::int32_t id : ids) {
    weights.push_back(std::exp((logit(id) - logit(ids.front())) / options.temperature));
    total += weights.back();
  }
  const auto words =
      philox({.seed = options.seed, .purpose = RandomPurpose::sample, .index = position});
  total = keep_nucleus(weights, total, options.top_p);
  double rest = (static_cast<double>(words[0]) + 0.5) * 0x1.0p-32 * total;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    rest -= weights[i];
    if (rest < 0) return ids[i];
  }
  return ids[weights.size() - 1];
}

std::vector<std::int32_t> generate(const Engine::Inputs& inputs,
                                   std::span<const std::int32_t> prompt,
                                   const SamplingOptions& options,
                                   StreamView stream) {
  const auto& pairs = inputs.model.pairs;
  const std::span<const std::int32_t> source = pairs ? prompt : std::span<const std::int32_t>();
  const std::vector<std::int32_t> source_count(pairs ? 1 : 0,
                                               static_cast<std::int32_t>(prompt.size()));
  std::vector<std::int32_t> tokens(prompt.begin(), prompt.end());
  if (pairs) tokens = {pairs->start};
  const auto given = std::ssize(tokens);
  std::vector<float> logits(static_cast<std::size_t>(inputs.model.vocabulary));
  std::optional<Engine> engine;  // for `planned` tokens: all that follow once the context is full
  std::int64_t planned = 0;
  for (std::int64_t i = 0; i < options.max_new_tokens; ++i) {
    const auto length = std::min(static_cast<std::int64_t>(tokens.size()), inputs.model.positions);
    if (length != planned) {
      engine.emplace(inputs, Engine::Options{.shape = {1, length, std::ssize(source)}}, stream);
      planned = length;
    }
    const MicroBatch batch{.tokens = std::span(tokens).last(static_cast<std::size_t>(length)),
                           .labels = {},
                           .source = source,
                           .source_count = source_count};
    engine->logits(batch, HostView(logits, {1, inputs.model.vocabulary}));
    check_finite(logits, i);
    tokens.push_back(choose_token(logits, options, static_cast<std::uint64_t>(i)));
    if (std::ranges::find(options.end_tokens, tokens.back()) != options.end_tokens.end()) break;
  }
  tokens.erase(tokens.begin(), tokens.begin() + given);
  return tokens;
}

}  // namespace dstrain::engine
