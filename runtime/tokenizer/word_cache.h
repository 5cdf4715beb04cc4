#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace dstrain::tokenizer {

/// Caches the tokens of recent words: a direct-mapped table in which a word replaces the previous
/// one in its place. Uses 64 bytes per place. For one thread at a time.
class WordCache {
 public:
  /// @p places is rounded up to a power of two.
  explicit WordCache(std::size_t places) : slots_(std::bit_ceil(std::max<std::size_t>(places, 2))) {
    shift_ = 64 - std::countr_zero(slots_.size());
  }

  /// Appends the tokens of a cached word. Returns whether it is cached.
  bool append(std::string_view word, std::vector<std::int32_t>& ids) const {
    if (word.size() > word_bytes_max) return false;
    const Key key = key_of(word);
    const Slot& slot = slots_[place_of(key)];
    if (slot.key != key) return false;
    ids.insert(ids.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
    return true;
  }

  /// Caches a word unless it is empty, too long or has too many tokens.
  void keep(std::string_view word, std::span<const std::int32_t> ids) {
    if (word.empty() || word.size() > word_bytes_max || ids.size() > ids_max) return;
    const Key key = key_of(word);
    Slot& slot = slots_[place_of(key)];
    slot.key = key;
    slot.count = static_cast<std::int32_t>(ids.size());
    std::copy(ids.begin(), ids.end(), slot.ids.begin());
  }

 private:
  static constexpr std::size_t word_bytes_max = 23;
  static constexpr std::size_t ids_max = 9;

  /// The bytes of a word, padded with zeros, and its size in the last byte; all zeros: no word.
  using Key = std::array<std::uint64_t, 3>;

  struct Slot {
    Key key{};
    std::array<std::int32_t, ids_max> ids{};
    std::int32_t count = 0;
  };
  static_assert(sizeof(Slot) == 64);

  static Key key_of(std::string_view word) {
    std::array<char, sizeof(Key)> bytes{};
    std::memcpy(bytes.data(), word.data(), word.size());
    bytes.back() = static_cast<char>(word.size());
    return std::bit_cast<Key>(bytes);
  }
  [[nodiscard]] std::size_t place_of(const Key& key) const {
    constexpr std::array<std::uint64_t, 3> odd{0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F,
                                               0x165667B19E3779F9};
    std::uint64_t mixed = key[0] * odd[0] ^ std::rotl(key[1] * odd[1], 23) ^ key[2] * odd[2];
    mixed ^= mixed >> 29;
    return static_cast<std::size_t>(mixed * odd[1] >> shift_);
  }

  std::vector<Slot> slots_;
  int shift_ = 0;
};

}  // namespace dstrain::tokenizer
