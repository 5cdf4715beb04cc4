#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/tokenizer/bpe.h"
#include "runtime/tokenizer/json_field.h"
#include "runtime/tokenizer/normalizer.h"
#include "runtime/tokenizer/pattern.h"

namespace dstrain::tokenizer {

/// A text that is cut into words.
struct Words {
  Passage passage;
  std::vector<Span> spans;  ///< ranges of passage.text, in order and not empty
};

/// Working memory of cutting, reused for all texts. For one thread at a time.
struct CutMemory {
  MatchMemory match;
  std::string text;
  std::vector<Span> spans;
};

/// Cuts words into smaller ones and may rewrite them. Immutable, so threads may share one.
class PreTokenizer {
 public:
  PreTokenizer() = default;
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;
  virtual ~PreTokenizer() = default;

  virtual void apply(Words& words, CutMemory& memory) const = 0;
  /// See Border. No earlier step has ended a word there.
  [[nodiscard]] virtual bool allows_cut(Border& border) const = 0;
};

struct PreTokenizers {
  std::vector<std::unique_ptr<PreTokenizer>> steps{};
  /// Set by ByteLevel, which writes each byte as a character of GPT-2's alphabet. Here the words do
  /// not change, and the model uses bytes as its units.
  BpeUnit unit = BpeUnit::character;
};

/// Reads the "pre_tokenizer" of tokenizer.json, with sequences flattened. Throws Error{input}.
PreTokenizers read_pre_tokenizers(const JsonField& field);

/// Returns GPT-2's: its regular expression, then bytes.
PreTokenizers gpt2_pre_tokenizers();

/// Cuts where no merge can join tokens, which does not change the tokens. A text without other cuts
/// is split into words that are shorter and repeat. `model` must outlive the result.
std::unique_ptr<PreTokenizer> make_joint_cuts(const Bpe& model);

}  // namespace dstrain::tokenizer
