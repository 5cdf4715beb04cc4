#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace dstrain::engine {

/// When a beam search ends before all texts are at their largest length.
enum class EarlyStopping : std::int8_t {
  no,    ///< when the best beam, with its present length, would be no better than each text
  yes,   ///< as soon as there are num_beams texts
  never  ///< when the best beam cannot become better than each text, whatever its length
};

/// With Hugging Face's names and meaning.
struct BeamOptions {
  std::int64_t num_beams = 1;             ///< 1: there is no beam search
  std::int64_t num_return_sequences = 1;  ///< at most num_beams
  double length_penalty = 1;  ///< a text's score is divided by its new tokens to this power
  EarlyStopping early_stopping = EarlyStopping::no;
};

/// The beams of one prompt and the texts that they have become, as transformers' beam search has
/// them: each beam is continued by each token, the best continuations are the next beams, and those
/// that end are texts. Knows scores and tokens only. A beam has a place, and stays there if one of
/// its continuations does, so that little has to be copied. For one thread at a time.
class BeamSearch {
 public:
  struct Text {
    std::vector<std::int32_t> tokens{};  ///< the new ones
    float score = 0;                     ///< with its length penalty
  };
  /// A beam that continues that of another place.
  struct Copy {
    std::size_t from = 0;  ///< differs from each `to`
    std::size_t to = 0;
  };
  enum class State : std::int8_t { grows, ended };

  /// Begins. `end_tokens`: each ends a text.
  BeamSearch(const BeamOptions& options,
             std::vector<std::int32_t> end_tokens,
             std::int64_t max_new_tokens);
  /// Returns the most beams for which every step finds continuations that do not end.
  static std::int64_t beams_max(std::int64_t vocabulary, std::size_t end_tokens);

  /// Adds the scores of the tokens that may follow the beam at `place`, logarithms of their
  /// probabilities. Before the first step only place 0 has a beam.
  void add(std::size_t place, std::span<const float> scores);
  /// Whether all beams have their scores.
  [[nodiscard]] bool complete() const { return added_ == (new_tokens_ == 0 ? 1 : beams_.size()); }
  /// Takes the step for which all scores were added.
  State advance();

  /// The copies of the last step; they may be made in any order.
  [[nodiscard]] std::span<const Copy> copies() const { return copies_; }
  /// The new tokens of the beam at `place`.
  [[nodiscard]] std::span<const std::int32_t> tokens(std::size_t place) const {
    return beams_[place].tokens;
  }
  /// The num_return_sequences best texts of a search that has ended, best first.
  [[nodiscard]] std::span<const Text> texts() const;

 private:
  /// A beam with one more token.
  struct Candidate {
    float score = 0;
    std::size_t place = 0;
    std::int32_t token = 0;
  };
  static bool is_better(const Candidate& a, const Candidate& b);
  [[nodiscard]] bool ends(const Candidate& candidate) const;
  [[nodiscard]] float with_penalty(float score, std::int64_t length) const;
  void take_texts();
  void take_beams();
  [[nodiscard]] State state() const;

  BeamOptions options_;
  std::vector<std::int32_t> end_tokens_;
  std::int64_t max_new_tokens_;
  std::size_t candidates_max_;
  std::int64_t new_tokens_ = 0;  ///< of each beam
  std::size_t added_ = 0;        ///< beams
  std::vector<Text> beams_;      ///< by place; their scores have no length penalty
  /// The best of those that were added: a heap, whose first one is the worst.
  std::vector<Candidate> candidates_;
  std::vector<Text> texts_;  ///< best first, at most num_beams
  std::vector<Copy> copies_;
};

}  // namespace dstrain::engine
