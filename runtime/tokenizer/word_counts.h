#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::tokenizer {

/// Counts the occurrences of each different word. A hash table with open addressing, at most half
/// full, over the concatenated words. For one thread at a time.
class WordCounts {
 public:
  /// Adds `times` occurrences of a word of less than 2^32 bytes. Throws Error{input} if there are
  /// 2^32 different words.
  void add(std::string_view word, std::uint64_t times = 1);
  void add(const WordCounts& other);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  /// Returns the total size of the different words.
  [[nodiscard]] std::size_t letters() const { return letters_.size(); }

  /// Calls `visit(word, count)` for each word in the order of first occurrence.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const Entry& entry : entries_) visit(word_of(entry), entry.count);
  }

 private:
  struct Entry {
    std::size_t begin = 0;
    std::uint64_t count = 0;
    std::uint32_t bytes = 0;
    std::uint32_t hash = 0;
  };

  [[nodiscard]] std::string_view word_of(const Entry& entry) const {
    return std::string_view(letters_).substr(entry.begin, entry.bytes);
  }
  void grow();

  std::string letters_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(1024);  ///< 0: empty; 1: entry 0
};

}  // namespace dstrain::tokenizer
