#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "runtime/tokenizer/merge_table.h"
#include "runtime/tokenizer/pair_table.h"
#include "runtime/tokenizer/word_counts.h"

namespace dstrain::tokenizer {

/// The merges of byte-pair encoding (Sennrich et al., arXiv:1508.07909): again and again, the pair
/// of tokens that stand side by side most often in the words becomes a token; of equals, the one of
/// smaller ids. Counts are kept up to date by looking at the places of that pair only, so that all
/// merges together take a time of about the letters of the words, however long a word is.
class MergeLearner {
 public:
  /// @p id_of_byte the tokens to begin with, whose ids are below `first_id`.
  /// Throws Error{input} when the words have 2^32 letters or more.
  MergeLearner(const WordCounts& words,
               const std::array<std::int32_t, 256>& id_of_byte,
               std::int32_t first_id);

  /// The next merge, whose result is the next id; nothing when no pair comes twice.
  std::optional<Merge> next();

 private:
  /// A place in `tokens_`.
  using Place = std::uint32_t;

  /// Where a pair stands, in order: the first place of its left token. Places where it no longer
  /// stands remain, but do not count.
  struct Occurrences {
    std::uint64_t count = 0;  ///< over all texts
    std::vector<Place> places;
  };

  struct Candidate {
    std::uint64_t count = 0;  ///< or less by now
    TokenPair pair;
    std::uint32_t number = 0;  ///< of the pair

    /// Whether the other one is merged first.
    bool operator<(const Candidate& other) const {
      if (count != other.count) return count < other.count;
      if (pair.left != other.pair.left) return pair.left > other.pair.left;
      return pair.right > other.pair.right;
    }
  };

  void add_word(std::string_view word,
                std::uint64_t count,
                const std::array<std::int32_t, 256>& id_of_byte);
  void keep_first_pairs();
  void keep(TokenPair pair, Occurrences& occurrences);
  void apply(const Merge& merge, const std::vector<Place>& places);
  void merge_at(Place place, const Merge& merge);
  void subtract(TokenPair pair, std::uint64_t count);
  void add(std::vector<Occurrences>& fresh,
           std::int32_t neighbour,
           Place place,
           std::uint64_t count);
  [[nodiscard]] std::uint32_t letters(std::int32_t token) const {
    return letters_of_[static_cast<std::size_t>(token)];
  }

  static constexpr std::int32_t gap = -1;

  /// The words, one after another. A token of n letters takes n places, of which the first and the
  /// last hold its id; before, between and after the words there is a gap.
  std::vector<std::int32_t> tokens_;
  std::vector<std::uint32_t> word_of_;     ///< by place
  std::vector<std::uint64_t> count_of_;    ///< by word
  std::vector<std::uint32_t> letters_of_;  ///< by token
  PairTable pairs_;
  std::vector<Occurrences> occurrences_;  ///< by the pair's number
  std::priority_queue<Candidate> queue_;
  /// Of the pairs that the merge at hand makes: those with its token on the right, and on the left,
  /// by the other token.
  std::vector<Occurrences> before_;
  std::vector<Occurrences> after_;
  std::vector<std::int32_t> neighbours_;  ///< that have some; one may stand here twice
};

}  // namespace dstrain::tokenizer
