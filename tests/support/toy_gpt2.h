#pragma once
#include "runtime/model/gpt2.h"

namespace dstrain::test {

/// A GPT-2 small enough to look at: odd vocabulary, so that shards are uneven.
inline model::Model toy_gpt2(DType dtype = DType::f32, std::int64_t in_splits = 1) {
  model::Gpt2Config config;
  config.vocab_size = 101;
  config.n_positions = 16;
  config.n_embd = 24;
  config.n_layer = 6;
  config.n_head = 2;
  config.n_inner = 96;
  return model::make_gpt2(config, {dtype, in_splits});
}

}  // namespace dstrain::test
