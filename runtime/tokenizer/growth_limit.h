#pragma once
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace dstrain::tokenizer {

/// How large the steps of a tokenizer may make one text. Each of them may replace a character by a
/// text, and a few in a row could fill any memory.
struct GrowthLimit {
  std::size_t bytes_max = std::numeric_limits<std::size_t>::max();
  std::string_view place{};  ///< of the tokenizer, for messages; must outlive this

  /// That of a text of so many bytes: 64 times as many and 4 KiB, at most 4 GiB more.
  static GrowthLimit of(std::size_t bytes, std::string_view place);

  /// Throws Error{input} when a text has become larger. `step`: the key in tokenizer.json.
  void check(std::size_t bytes, const char* step) const {
    if (bytes > bytes_max) refuse(step);
  }

 private:
  [[noreturn]] void refuse(const char* step) const;
};

}  // namespace dstrain::tokenizer
