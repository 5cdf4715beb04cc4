#pragma once
#include "runtime/model/llama_config.h"
#include "runtime/model/model.h"

namespace dstrain::model {

/// A Llama, Mistral or Qwen as units. `config` must have passed check().
Model make_llama(const LlamaConfig& config, const UnitOptions& options = {});

}  // namespace dstrain::model
