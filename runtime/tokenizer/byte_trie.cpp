#include "runtime/tokenizer/byte_trie.h"

namespace dstrain::tokenizer {

void ByteTrie::insert(std::string_view key, std::int32_t value) {
  std::int32_t node = 0;
  for (const char letter : key) {
    const auto byte = static_cast<unsigned char>(letter);
    const auto added = static_cast<std::int32_t>(values_.size());
    const auto [place, is_new] =
        child_of_.emplace(static_cast<std::uint64_t>(node) << 8 | byte, added);
    if (is_new) values_.push_back(none);
    node = place->second;
  }
  values_[static_cast<std::size_t>(node)] = value;
}

}  // namespace dstrain::tokenizer
