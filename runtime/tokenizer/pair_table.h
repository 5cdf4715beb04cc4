#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace dstrain::tokenizer {

/// Two adjacent tokens.
struct TokenPair {
  std::int32_t left = 0;
  std::int32_t right = 0;

  bool operator==(const TokenPair& other) const {
    return left == other.left && right == other.right;
  }
};

/// Numbers pairs in the order in which they are added. A hash table with open addressing, at most
/// half full.
class PairTable {
 public:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

  /// Returns the number of a pair; `none` if it was not added.
  [[nodiscard]] std::uint32_t find(TokenPair pair) const { return slots_[place_of(pair)].number; }
  /// Adds a new pair and returns its number.
  std::uint32_t add(TokenPair pair) {
    if (size_ >= slots_.size() / 2) grow();
    slots_[place_of(pair)] = {.pair = pair, .number = size_};
    return size_++;
  }

 private:
  struct Slot {
    TokenPair pair;
    std::uint32_t number = none;
  };

  /// Returns the slot of the pair, or the one where it would go.
  [[nodiscard]] std::size_t place_of(TokenPair pair) const {
    constexpr std::uint64_t golden_ratio = 0x9E3779B97F4A7C15;
    const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(pair.left)} << 32 |
                              static_cast<std::uint32_t>(pair.right);
    std::size_t at = (key * golden_ratio >> 32) & (slots_.size() - 1);
    while (slots_[at].number != none && slots_[at].pair != pair)
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != none) slots_[place_of(slot.pair)] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1024);
  std::uint32_t size_ = 0;
};

}  // namespace dstrain::tokenizer
