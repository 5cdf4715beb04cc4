#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dstrain::tokenizer {

/// How often each different word came: a hash table with open addressing, at most half full, over
/// words that lie one behind the other. Belongs to one thread at a time.
class WordCounts {
 public:
  /// Counts a word of less than 2^32 bytes `times` more. Throws Error{input} where there would be
  /// 2^32 different ones.
  void add(std::string_view word, std::uint64_t times = 1);
  void add(const WordCounts& other);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  /// The bytes of all different words together.
  [[nodiscard]] std::size_t letters() const { return letters_.size(); }

  /// Calls `visit(word, count)` with each word, in the order in which they came first.
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
