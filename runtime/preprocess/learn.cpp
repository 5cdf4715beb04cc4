#include "runtime/preprocess/learn.h"

#include <atomic>

#include "runtime/base/error.h"
#include "runtime/preprocess/encode_piece.h"
#include "runtime/preprocess/input_reader.h"
#include "runtime/preprocess/ordered_work.h"

namespace dstrain::preprocess {

void add_documents(const std::vector<InputFile>& inputs,
                   const std::string& text_column,
                   int workers,
                   tokenizer::BpeTrainer& trainer,
                   FunctionRef<void(std::int64_t consumed)> report) {
  const auto cut = [&](std::string_view text) {
    return trainer.safe_cut(text);
  };
  InputReader reader(inputs, cut, {.text_column = text_column});
  const auto next = [&] {
    return reader.next();
  };
  std::atomic<bool> has_text = false;
  const auto count = [&](InputPiece& piece) {
    for_each_text(piece, inputs[static_cast<std::size_t>(piece.position.input)], text_column,
                  [&](std::string_view text) {
                    if (!text.empty()) has_text = true;
                    trainer.add(text);
                  });
    return piece.consumed;
  };
  const auto take = [&](InputPiece& /*piece*/, std::int64_t& consumed) {
    report(consumed);
  };
  OrderedWork<InputPiece, std::int64_t>(workers, {next, count, take}).run();
  if (!has_text) fail(ErrorCode::input, "the inputs hold no text");
}

}  // namespace dstrain::preprocess
