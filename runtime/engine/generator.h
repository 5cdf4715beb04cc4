#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/engine.h"

namespace dstrain::engine {

/// How the next token is chosen, under Hugging Face's names.
struct SamplingOptions {
  std::int64_t max_new_tokens = 100;
  bool do_sample = false;    ///< false: the likeliest token, the lowest id among equals
  double temperature = 1.0;  ///< > 0; divides the logits
  std::int64_t top_k = 0;    ///< sample among the k likeliest; 0: among all
  /// In 0 to 1; sample among the likeliest whose probabilities sum to it; 1: among all.
  double top_p = 1.0;
  std::uint64_t seed = 42;
  std::vector<std::int32_t> end_tokens{};  ///< each ends a text: nothing follows it
};

/// The token that follows, chosen from its logits (V). `position` numbers the draw: equal seeds,
/// logits and positions give equal tokens.
std::int32_t choose_token(std::span<const float> logits,
                          const SamplingOptions& options,
                          std::uint64_t position);

/// Continues `prompt` (at least one token), or of an encoder-decoder makes a target of it, by
/// max_new_tokens tokens, or until one of `end_tokens`, and returns those. Each token runs the
/// model over the last `model.positions` tokens anew. Collective.
std::vector<std::int32_t> generate(const Engine::Inputs& inputs,
                                   std::span<const std::int32_t> prompt,
                                   const SamplingOptions& options,
                                   StreamView stream);

}  // namespace dstrain::engine
