#include "runtime/tokenizer/plug_in.h"

#include "runtime/tokenizer/gpt2_trainer.h"
#include "runtime/tokenizer/load_codec.h"

/// The symbol that the program looks up; see plug_in_functions_symbol.
extern "C" __attribute__((visibility("default")))
const dstrain::tokenizer::PlugInFunctions dstrain_tokenizers_1{
    .load = dstrain::tokenizer::load_codec,
    .make_bpe_trainer = dstrain::tokenizer::make_gpt2_trainer};
