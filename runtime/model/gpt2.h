#pragma once
#include "runtime/model/gpt2_config.h"
#include "runtime/model/model.h"

namespace dstrain::model {

/// A GPT-2 as units "embedding", "h.0" ... "h.{L-1}" and "head", joined by the activations
/// "hidden0" ... "hidden{L}"; the head borrows the embedding's wte.weight. `config` must have
/// passed check(). First values as Hugging Face draws them: normal(0, initializer_range), the
/// projections back into the residual stream narrower by sqrt(2 L), biases 0, norms 1 and 0.
/// `dtype`: f32 or bf16, of parameters and activations. `in_splits`: tiles of each weight of a
/// block, see Gpt2Block.
Model make_gpt2(const Gpt2Config& config, DType dtype = DType::f32, std::int64_t in_splits = 1);

}  // namespace dstrain::model
