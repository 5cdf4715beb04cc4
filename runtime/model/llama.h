#pragma once
#include "runtime/model/llama_config.h"
#include "runtime/model/model.h"

namespace dstrain::model {

/// Makes a Llama (Touvron et al. 2023), or a model that differs only by options of LlamaConfig:
/// Mistral, Qwen2, Qwen3, Phi-3. Units "embedding", "layers.0" ... "layers.{L-1}" and "head",
/// joined by the activations "hidden0" ... "hidden{L}"; parameters have Hugging Face's names.
/// `config` must have passed check(). Initial values are Hugging Face's: normal(0,
/// initializer_range), biases 0, norms 1.
/// A block saves 3 C + 2 F + (H + 2 K) D values per token, with C = hidden_size, F =
/// intermediate_size, H heads, K heads of keys and values, D features each: queries, keys, values,
/// the output of attention H D, the residual after it C, both inputs of the gate F, in the model's
/// dtype; and, in f32, log-sum-exp H and a statistic of each norm. The outputs of norms and of the
/// gate are rebuilt.
Model make_llama(const LlamaConfig& config, const UnitOptions& options = {});

}  // namespace dstrain::model
