#pragma once
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dstrain::tokenizer {

/// A map with byte strings as keys. Finds all keys that a text begins with.
class ByteTrie {
 public:
  ByteTrie() : values_(1, none) {}

  void insert(std::string_view key, std::int32_t value);

  /// Calls `visit(size, value)` for each key that `text` begins with, shortest first.
  template <class Visit>
  void for_each_prefix(std::string_view text, Visit&& visit) const {
    std::int32_t node = 0;
    for (std::size_t size = 1; size <= text.size(); ++size) {
      node = child(node, static_cast<unsigned char>(text[size - 1]));
      if (node == none) return;
      const std::int32_t value = values_[static_cast<std::size_t>(node)];
      if (value != none) visit(size, value);
    }
  }

 private:
  static constexpr std::int32_t none = -1;

  [[nodiscard]] std::int32_t child(std::int32_t node, unsigned char byte) const {
    const auto found = child_of_.find(static_cast<std::uint64_t>(node) << 8 | byte);
    return found == child_of_.end() ? none : found->second;
  }

  std::unordered_map<std::uint64_t, std::int32_t> child_of_;
  std::vector<std::int32_t> values_;  ///< by node
};

}  // namespace dstrain::tokenizer
