#pragma once
#include <memory>

#include "runtime/tokenizer/bpe_trainer.h"

namespace dstrain::tokenizer {

/// Implements make_bpe_trainer(), for the plug-in.
std::unique_ptr<BpeTrainer> make_gpt2_trainer();

}  // namespace dstrain::tokenizer
