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

/// Learns the merges of byte-pair encoding (Sennrich et al., arXiv:1508.07909). Each step merges
/// the most frequent pair of adjacent tokens in the words; smaller ids win ties. Only the
/// occurrences of that pair are visited to update the counts, so all merges together take time
/// about proportional to the letters, however long a word is.
class MergeLearner {
 public:
  /// @p id_of_byte the initial tokens, with ids below `first_id`
  /// Throws Error{input} if the words have 2^32 letters or more.
  MergeLearner(const WordCounts& words,
               const std::array<std::int32_t, 256>& id_of_byte,
               std::int32_t first_id);

  /// Returns the next merge, whose result has the next id; nothing if no pair occurs twice.
  std::optional<Merge> next();

 private:
  /// An index of `tokens_`.
  using Place = std::uint32_t;

  /// The sorted occurrences of a pair, as the first place of its left token. Stale ones remain but
  /// are not counted.
  struct Occurrences {
    std::uint64_t count = 0;  ///< over all texts
    std::vector<Place> places;
  };

  struct Candidate {
    std::uint64_t count = 0;  ///< possibly less by now
    TokenPair pair;
    std::uint32_t number = 0;  ///< of the pair

    /// Whether the other candidate is merged first.
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

  /// The concatenated words. A token of n letters takes n places; the first and the last hold its
  /// id. There is a gap before, between and after the words.
  std::vector<std::int32_t> tokens_;
  std::vector<std::uint32_t> word_of_;     ///< by place
  std::vector<std::uint64_t> count_of_;    ///< by word
  std::vector<std::uint32_t> letters_of_;  ///< by token
  PairTable pairs_;
  std::vector<Occurrences> occurrences_;  ///< by the pair's number
  std::priority_queue<Candidate> queue_;
  /// Pairs that the current merge creates, with the new token on the right, and on the left;
  /// indexed by the other token.
  std::vector<Occurrences> before_;
  std::vector<Occurrences> after_;
  std::vector<std::int32_t> neighbours_;  ///< tokens with such pairs, possibly with duplicates
};

}  // namespace dstrain::tokenizer
