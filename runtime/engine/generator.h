#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/engine/engine.h"

namespace dstrain::engine {

/// How to choose the next token, with Hugging Face's names.
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

/// Chooses the next token from its logits (V). `position` numbers the draw: equal seeds, logits and
/// positions give equal tokens.
std::int32_t choose_token(std::span<const float> logits,
                          const SamplingOptions& options,
                          std::uint64_t position);

/// Continues `prompt` (at least one token), or makes a target of it with an encoder-decoder, by
/// max_new_tokens tokens or until one of `end_tokens`, and returns the new tokens. Each token runs
/// the model over the last `model.positions` tokens again. Collective.
std::vector<std::int32_t> generate(const Engine::Inputs& inputs,
                                   std::span<const std::int32_t> prompt,
                                   const SamplingOptions& options,
                                   StreamView stream);

}  // namespace dstrain::engine
