#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/checksum.h"
#include "runtime/base/pair_tokens.h"
#include "runtime/data/text_encoder.h"

namespace dstrain::data {

/// How questions become sequences.
struct ChoiceOptions {
  std::int64_t vocabulary = 0;              ///< V of the model: every id must be below it
  std::int64_t tokens_max = 0;              ///< of a decoder's input
  std::int64_t sources_max = 0;             ///< of an encoder-decoder's source
  std::optional<PairTokens> pair_tokens{};  ///< of an encoder-decoder
};

/// One choice of a question, for a model: the loss of its labels is the choice's negative
/// log-likelihood.
struct ChoiceSequence {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> labels;  ///< as many; `ignored_label` before the choice
  std::vector<std::int32_t> source;  ///< of an encoder-decoder: the query
};

/// A file of multiple-choice questions: JSON lines {"query": "...", "choices": ["...", ...],
/// "gold": 0}. As in lm-evaluation-harness, query and choice are encoded as one text, and the
/// choice has the tokens behind as many as the query alone has; white space at the end of a query
/// belongs to its choices. The query is the source of an encoder-decoder, the choice its target.
/// Immutable.
class ChoiceQuestions {
 public:
  struct Question {
    std::vector<std::int64_t> choice_bytes;  ///< of each choice, as the file has it
    std::size_t gold = 0;
    std::size_t first_sequence = 0;  ///< of its choices, which follow one another
  };
  /// Throws Error{input} that names file and line, and Error{io}.
  ChoiceQuestions(const std::string& path,
                  const TextEncoder& encoder,
                  const ChoiceOptions& options);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Checksum digest() const { return digest_; }
  [[nodiscard]] const std::vector<Question>& questions() const { return questions_; }
  [[nodiscard]] const std::vector<ChoiceSequence>& sequences() const { return sequences_; }
  /// Returns how many of the longest sequences lost the beginning of their query.
  [[nodiscard]] std::int64_t shortened() const { return shortened_; }

 private:
  std::string path_;
  Checksum digest_{};
  std::vector<Question> questions_;
  std::vector<ChoiceSequence> sequences_;
  std::int64_t shortened_ = 0;
};

/// Whether a file is JSON lines by its name and begins with such a question. False if it cannot be
/// read.
bool holds_questions(const std::string& path);

/// The questions whose gold choice is the likeliest, and the likeliest per byte; the first among
/// equals. `log_likelihoods`: by sequence.
struct ChoiceScores {
  std::int64_t right = 0;
  std::int64_t right_per_byte = 0;
};
ChoiceScores score(const ChoiceQuestions& questions, const std::vector<double>& log_likelihoods);

}  // namespace dstrain::data
