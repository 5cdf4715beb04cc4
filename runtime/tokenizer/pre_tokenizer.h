#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/tokenizer/bpe.h"
#include "runtime/tokenizer/json_field.h"
#include "runtime/tokenizer/normalizer.h"
#include "runtime/tokenizer/pattern.h"

namespace dstrain::tokenizer {

/// A text that is being cut into words.
struct Words {
  Passage passage;
  std::vector<Span> spans;  ///< of passage.text, in order, none empty
};

/// What cutting needs besides the words; of one thread at a time, and kept between texts.
struct CutMemory {
  MatchMemory match;
  std::string text;
  std::vector<Span> spans;
};

/// Cuts words into smaller ones, and may rewrite them. Immutable, so threads may share one.
class PreTokenizer {
 public:
  PreTokenizer() = default;
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;
  virtual ~PreTokenizer() = default;

  virtual void apply(Words& words, CutMemory& memory) const = 0;
  /// See Border, at which no step before has ended a word.
  [[nodiscard]] virtual bool allows_cut(Border& border) const = 0;
};

struct PreTokenizers {
  std::vector<std::unique_ptr<PreTokenizer>> steps{};
  /// ByteLevel ends them: it writes each byte as a character of GPT-2's alphabet. Here words stay
  /// as they are, and the model takes bytes for its units.
  BpeUnit unit = BpeUnit::character;
};

/// The "pre_tokenizer" of tokenizer.json, sequences flattened. Throws Error{input}.
PreTokenizers read_pre_tokenizers(const JsonField& field);

/// GPT-2's: its regular expression, then bytes.
PreTokenizers gpt2_pre_tokenizers();

/// Cuts where no merge joins tokens, which changes none of them: a text without other cuts falls
/// into words, which are shorter and come again. `model` outlives it.
std::unique_ptr<PreTokenizer> make_joint_cuts(const Bpe& model);

}  // namespace dstrain::tokenizer
