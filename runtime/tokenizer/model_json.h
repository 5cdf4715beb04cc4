#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/function_ref.h"
#include "runtime/tokenizer/bpe.h"
#include "runtime/tokenizer/json_field.h"
#include "runtime/tokenizer/vocabulary.h"

namespace dstrain::tokenizer {

/// A vocabulary and its model.
struct LoadedModel {
  std::unique_ptr<const Vocabulary> vocabulary;
  std::unique_ptr<const Model> model;
  const Bpe* bpe = nullptr;  ///< the model, if it is one
};

/// Reads the "model" of tokenizer.json: BPE or Unigram. Throws Error{input}.
LoadedModel read_model(const JsonField& field, BpeUnit unit);

/// Reads the tokens of an object `{"token": id, ...}`.
std::vector<VocabularyEntry> read_token_ids(const JsonField& field);

/// Returns the merge of two tokens; all three must be in the vocabulary. Throws Error{input} that
/// begins with `place`.
Merge make_merge(std::string_view left,
                 std::string_view right,
                 const Vocabulary& vocabulary,
                 FunctionRef<std::string()> place);

/// Splits "a b" into "a" and "b". Throws Error{input}.
std::pair<std::string_view, std::string_view> split_merge(std::string_view line,
                                                          FunctionRef<std::string()> place);

}  // namespace dstrain::tokenizer
