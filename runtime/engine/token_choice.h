#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "runtime/engine/beam_search.h"

namespace dstrain::engine {

/// How to choose the next token, with Hugging Face's names and meaning.
struct ChoiceOptions {
  bool do_sample = false;  ///< false: the likeliest token, the lowest id among equals
  double temperature = 1;  ///< > 0; divides the logits
  std::int64_t top_k = 0;  ///< draw among the k likeliest and their equals; 0: among all
  double top_p = 1;        ///< 0 to 1; draw among the likeliest whose probabilities sum to it
  double min_p = 0;        ///< 0 to 1; draw among those with this share of the largest probability
  double repetition_penalty = 1;    ///< > 0; above 1 makes tokens of the context less likely
  std::int64_t min_new_tokens = 0;  ///< no end token before so many
  std::uint64_t seed = 42;
  std::vector<std::int32_t> end_tokens{};  ///< each ends a text: nothing follows it
  BeamOptions beam{};                      ///< without do_sample; a Generator searches
};

/// Returns the number in (0, 1) that chooses new token `index` of a text. `variant`: which of
/// several texts for one prompt, below 2^32.
double choice_draw(std::uint64_t seed, std::uint64_t variant, std::int64_t index);

/// Chooses tokens of texts as transformers' `generate` does: repetition penalty, min_new_tokens,
/// temperature, top_k, top_p, min_p, and then a draw. Depends on nothing but its arguments, so one
/// chooser may serve many texts in turn. Its scratch memory is reused: once it has grown, nothing
/// is allocated. For one thread at a time. Reads the logits a few times, and sorts only tokens near
/// a cut and near the one that is drawn.
class TokenChooser {
 public:
  /// A token that may be drawn.
  struct Candidate {
    std::int32_t token = 0;
    double probability = 0;
  };

  TokenChooser(ChoiceOptions options, std::int64_t vocabulary);

  /// Returns the token that follows `context`: all tokens so far that the repetition penalty
  /// counts, thus a decoder's prompt and new tokens, or an encoder-decoder's target with its start
  /// token. `new_tokens`: how many of them are new. `variant`: see choice_draw. Uses `logits`
  /// (vocabulary) as working memory. Throws Error{diverged} if they are not finite.
  std::int32_t choose(std::span<float> logits,
                      std::span<const std::int32_t> context,
                      std::int64_t new_tokens,
                      std::uint64_t variant);

  /// Returns the tokens that `choose` draws from, likeliest first, lower ids first among equals.
  /// The token is the first whose probability, with those before it, exceeds choice_draw.
  std::vector<Candidate> candidates(std::span<float> logits,
                                    std::span<const std::int32_t> context,
                                    std::int64_t new_tokens);

  /// Turns logits into the scores of a beam search: logarithms of probabilities, changed by
  /// penalize(). Throws Error{diverged} if they are not finite.
  void score(std::span<float> logits,
             std::span<const std::int32_t> context,
             std::int64_t new_tokens);

  /// Changes the scores of tokens by repetition penalty and min_new_tokens, as `choose` begins.
  void penalize(std::span<float> scores,
                std::span<const std::int32_t> context,
                std::int64_t new_tokens);

 private:
  struct Scored {
    float score = 0;
    std::int32_t token = 0;
  };
  /// The tokens that may be drawn: all of the buckets before the last one, and the first `count` of
  /// that.
  struct Cut {
    int last_bucket = 0;
    std::size_t count = 0;
    double mass = 0;  ///< the sum of their weights
  };
  static constexpr int buckets = 2048;
  static constexpr std::size_t all_of_bucket = std::numeric_limits<std::size_t>::max();

  /// Returns the largest score.
  float prepare(std::span<float> logits,
                std::span<const std::int32_t> context,
                std::int64_t new_tokens);
  void penalize_repetition(std::span<float> scores, std::span<const std::int32_t> context);
  void keep_top_k(std::span<const float> scores);
  void drop_below_kth();
  /// Fills the buckets, and returns what top_p keeps of them.
  Cut cut(std::span<const float> scores, float largest);
  void fill_buckets();
  [[nodiscard]] Cut cut_at_top_p();
  [[nodiscard]] std::int32_t bucket_of(float score) const;
  [[nodiscard]] float weight(float score) const;
  /// Fills `members_` with the tokens of a bucket in their order.
  void gather(int bucket);
  /// Returns those of them that may be drawn.
  std::span<const Scored> gather_within(const Cut& cut, int bucket);
  std::int32_t draw(const Cut& cut, double target);

  ChoiceOptions options_;
  std::vector<std::uint8_t> is_seen_;  ///< by token; all false between calls
  std::vector<Scored> kept_;           ///< by top_k
  std::vector<float> kept_scores_;
  std::vector<std::int32_t> kept_tokens_;

  // The tokens by score in buckets, the largest scores first. A token's weight is its probability
  // divided by the largest one.
  std::span<const float> scores_;  ///< of this call: all tokens, or those of kept_tokens_
  float largest_ = 0;
  float bucket_scale_ = 0;  ///< buckets per unit of the score
  std::array<double, buckets> bucket_mass_{};
  double total_ = 0;  ///< the weight of all tokens, those that min_p removes included
  std::vector<Scored> members_;
  int gathered_ = -1;  ///< the bucket of members_
};

}  // namespace dstrain::engine
