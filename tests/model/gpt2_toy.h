#pragma once
#include "runtime/model/gpt2.h"
#include "tests/model/unit_chain.h"

namespace dstrain::test {

/// Sizes small enough for central differences, and odd where they may be.
inline model::Gpt2Config toy_config(float dropout = 0) {
  model::Gpt2Config config;
  config.vocab_size = 19;
  config.n_positions = 12;
  config.n_embd = 12;
  config.n_layer = 2;
  config.n_head = 3;
  config.n_inner = 20;
  config.embd_pdrop = dropout;
  config.attn_pdrop = dropout;
  config.resid_pdrop = dropout;
  return config;
}

/// A chain with random parameters, tokens and labels; every fifth label does not count.
class ToyChain : public UnitChain {
 public:
  ToyChain(const model::Model& model, model::BatchShape shape) : UnitChain(model, shape) {
    fill(1, 0.3F);
    const auto vocabulary = static_cast<std::uint64_t>(model.vocabulary);
    tokens = random_tokens(shape.rows(), 100, vocabulary);
    labels = random_tokens(shape.rows(), 101, vocabulary);
    for (std::size_t i = 2; i < labels.size(); i += 5) labels[i] = -100;
  }
};

}  // namespace dstrain::test
