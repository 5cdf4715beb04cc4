#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/preprocess/input_file.h"
#include "runtime/tokenizer/bpe_trainer.h"

namespace dstrain::preprocess {

/// Passes the text of all documents to a trainer; several threads read. Calls `report` after each
/// piece with the number of bytes of the inputs read so far. Throws Error{input} naming the file
/// and the place, Error{io}.
void add_documents(const std::vector<InputFile>& inputs,
                   const std::string& text_column,
                   int workers,
                   tokenizer::BpeTrainer& trainer,
                   FunctionRef<void(std::int64_t consumed)> report);

}  // namespace dstrain::preprocess
