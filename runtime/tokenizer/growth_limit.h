#pragma once
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>

namespace dstrain::tokenizer {

/// Limits the size to which the steps of a tokenizer may grow one text. Each step can replace a
/// character by a text, so a few in a row could fill any memory.
struct GrowthLimit {
  std::size_t bytes_max = std::numeric_limits<std::size_t>::max();
  std::string_view place{};  ///< of the tokenizer, for messages; must outlive this

  /// Returns the limit for a text of `bytes`: 64 times that and 4 KiB, but at most 4 GiB more.
  static GrowthLimit of(std::size_t bytes, std::string_view place);

  /// Throws Error{input} if a text has grown larger. `step`: the key in tokenizer.json.
  void check(std::size_t bytes, const char* step) const {
    if (bytes > bytes_max) refuse(step);
  }

 private:
  [[noreturn]] void refuse(const char* step) const;
};

}  // namespace dstrain::tokenizer
