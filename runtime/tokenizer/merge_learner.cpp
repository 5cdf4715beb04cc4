#include "runtime/tokenizer/merge_learner.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/base/error.h"

namespace dstrain::tokenizer {
namespace {

constexpr std::uint64_t count_min = 2;  ///< of a pair, to be merged

}  // namespace

MergeLearner::MergeLearner(const WordCounts& words,
                           const std::array<std::int32_t, 256>& id_of_byte,
                           std::int32_t first_id)
    : letters_of_(static_cast<std::size_t>(first_id), 1),
      before_(letters_of_.size()),
      after_(letters_of_.size()) {
  const std::size_t places = words.letters() + words.size() + 1;
  if (places > std::numeric_limits<Place>::max()) {
    fail(ErrorCode::input, "the different words of the texts have {} bytes: too many to learn from",
         words.letters());
  }
  tokens_.reserve(places);
  word_of_.reserve(places);
  count_of_.reserve(words.size());
  words.for_each(
      [&](std::string_view word, std::uint64_t count) { add_word(word, count, id_of_byte); });
  tokens_.push_back(gap);
  keep_first_pairs();
}

void MergeLearner::add_word(std::string_view word,
                            std::uint64_t count,
                            const std::array<std::int32_t, 256>& id_of_byte) {
  const auto number = static_cast<std::uint32_t>(count_of_.size());
  count_of_.push_back(count);
  tokens_.push_back(gap);
  for (const char byte : word) tokens_.push_back(id_of_byte[static_cast<unsigned char>(byte)]);
  word_of_.resize(tokens_.size(), number);
}

void MergeLearner::keep_first_pairs() {
  const std::size_t ids = letters_of_.size();
  std::vector<Occurrences> found(ids * ids);
  for (std::size_t place = 0; place + 1 < tokens_.size(); ++place) {
    if (tokens_[place] == gap || tokens_[place + 1] == gap) continue;
    const auto left = static_cast<std::size_t>(tokens_[place]);
    const auto right = static_cast<std::size_t>(tokens_[place + 1]);
    Occurrences& occurrences = found[left * ids + right];
    occurrences.count += count_of_[word_of_[place]];
    occurrences.places.push_back(static_cast<Place>(place));
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    keep({static_cast<std::int32_t>(i / ids), static_cast<std::int32_t>(i % ids)}, found[i]);
  }
}

/// Stores a new pair. A pair that occurs only once is dropped: counts never rise.
void MergeLearner::keep(TokenPair pair, Occurrences& occurrences) {
  Occurrences kept = std::exchange(occurrences, {});
  if (kept.count < count_min) return;
  kept.places.shrink_to_fit();
  const std::uint32_t number = pairs_.add(pair);
  queue_.push({.count = kept.count, .pair = pair, .number = number});
  occurrences_.push_back(std::move(kept));
}

std::optional<Merge> MergeLearner::next() {
  while (!queue_.empty()) {
    Candidate best = queue_.top();
    queue_.pop();
    Occurrences& occurrences = occurrences_[best.number];
    if (occurrences.count == best.count) {
      const Merge merge{.left = best.pair.left,
                        .right = best.pair.right,
                        .result = static_cast<std::int32_t>(letters_of_.size())};
      apply(merge, std::exchange(occurrences, {}).places);
      return merge;
    }
    best.count = occurrences.count;
    if (best.count < count_min) {
      occurrences = {};
    } else {
      queue_.push(best);
    }
  }
  return std::nullopt;
}

void MergeLearner::apply(const Merge& merge, const std::vector<Place>& places) {
  letters_of_.push_back(letters(merge.left) + letters(merge.right));
  before_.emplace_back();
  after_.emplace_back();
  for (const Place place : places) {
    // Otherwise one of the tokens was merged already, perhaps in this loop: "aaa".
    if (tokens_[place] == merge.left && tokens_[place + letters(merge.left)] == merge.right) {
      merge_at(place, merge);
    }
  }
  for (const std::int32_t neighbour : neighbours_) {
    keep({neighbour, merge.result}, before_[static_cast<std::size_t>(neighbour)]);
    keep({merge.result, neighbour}, after_[static_cast<std::size_t>(neighbour)]);
  }
  neighbours_.clear();
}

void MergeLearner::merge_at(Place place, const Merge& merge) {
  const Place middle = place + letters(merge.left);
  const Place end = place + letters(merge.result);
  const std::int32_t left_neighbour = tokens_[place - 1];
  const std::int32_t right_neighbour = tokens_[end];
  tokens_[middle - 1] = tokens_[middle] = gap;
  tokens_[place] = tokens_[end - 1] = merge.result;
  const std::uint64_t count = count_of_[word_of_[place]];
  if (left_neighbour != gap) {
    if (left_neighbour == merge.result) {  // it has just counted this token as its right neighbour
      after_[static_cast<std::size_t>(merge.left)].count -= count;
    } else {
      subtract({left_neighbour, merge.left}, count);
    }
    add(before_, left_neighbour, place - letters(left_neighbour), count);
  }
  if (right_neighbour != gap) {
    subtract({merge.right, right_neighbour}, count);
    add(after_, right_neighbour, place, count);
  }
}

void MergeLearner::subtract(TokenPair pair, std::uint64_t count) {
  const std::uint32_t number = pairs_.find(pair);
  if (number == PairTable::none) return;  // it occurred only once
  std::uint64_t& known = occurrences_[number].count;
  known -= std::min(known, count);  // for the pair being merged, `known` is 0 already
}

void MergeLearner::add(std::vector<Occurrences>& fresh,
                       std::int32_t neighbour,
                       Place place,
                       std::uint64_t count) {
  Occurrences& occurrences = fresh[static_cast<std::size_t>(neighbour)];
  if (occurrences.places.empty()) neighbours_.push_back(neighbour);
  occurrences.count += count;
  occurrences.places.push_back(place);
}

}  // namespace dstrain::tokenizer
