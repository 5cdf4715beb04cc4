#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace dstrain::tokenizer {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

/// A map with strings as keys; lookups need no std::string.
template <class Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

}  // namespace dstrain::tokenizer
