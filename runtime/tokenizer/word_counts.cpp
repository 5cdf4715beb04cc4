#include "runtime/tokenizer/word_counts.h"

#include <functional>
#include <limits>

#include "runtime/base/error.h"

namespace dstrain::tokenizer {

void WordCounts::add(std::string_view word, std::uint64_t times) {
  const auto hash = static_cast<std::uint32_t>(std::hash<std::string_view>()(word));
  std::size_t at = hash & (slots_.size() - 1);
  while (slots_[at] != 0) {
    Entry& entry = entries_[slots_[at] - 1];
    if (entry.hash == hash && word_of(entry) == word) {
      entry.count += times;
      return;
    }
    at = (at + 1) & (slots_.size() - 1);
  }
  if (entries_.size() == std::numeric_limits<std::uint32_t>::max()) {
    fail(ErrorCode::input, "the texts have 2^32 different words: too many to learn from");
  }
  entries_.push_back({.begin = letters_.size(),
                      .count = times,
                      .bytes = static_cast<std::uint32_t>(word.size()),
                      .hash = hash});
  letters_ += word;
  slots_[at] = static_cast<std::uint32_t>(entries_.size());
  if (2 * entries_.size() > slots_.size()) grow();
}

void WordCounts::add(const WordCounts& other) {
  other.for_each([&](std::string_view word, std::uint64_t count) { add(word, count); });
}

void WordCounts::grow() {
  slots_.assign(2 * slots_.size(), 0);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    std::size_t at = entries_[i].hash & (slots_.size() - 1);
    while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = static_cast<std::uint32_t>(i + 1);
  }
}

}  // namespace dstrain::tokenizer
