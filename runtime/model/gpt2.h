#pragma once
#include "runtime/model/gpt2_config.h"
#include "runtime/model/model.h"

namespace dstrain::model {

/// Makes a GPT-2 with units "embedding", "h.0" ... "h.{L-1}" and "head", joined by the activations
/// "hidden0" ... "hidden{L}"; the head borrows the embedding's wte.weight. `config` must have
/// passed check(). Initial values are Hugging Face's: normal(0, initializer_range), the projections
/// back into the residual stream narrower by sqrt(2 L), biases 0, norms 1 and 0.
/// A block saves 5 C + F + H + 4 values per token, with F = n_inner: qkv 3 C, the output of
/// attention C, the residual after it C, the MLP's values before GELU F, in the model's dtype; and,
/// in f32, log-sum-exp H and two statistics of two norms. The outputs of norms and GELU are
/// rebuilt.
Model make_gpt2(const Gpt2Config& config, const UnitOptions& options = {});

}  // namespace dstrain::model
