#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace dstrain {

/// A value in shared memory that one thread writes and any number of threads and processes read: a
/// sequence lock. Neither side waits or enters the kernel; a writer that stops in the middle leaves
/// readers without a value, not with half of one. All zero bytes are the value of zeros. Each word
/// is stored with release, so that a reader of a new one sees the odd version before it; the thread
/// sanitizer does not support fences instead.
template <class T>
class PublishedRecord {
  static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
  static_assert(sizeof(T) % sizeof(std::uint64_t) == 0);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  static constexpr std::size_t word_count = sizeof(T) / sizeof(std::uint64_t);
  using Words = std::array<std::uint64_t, word_count>;

 public:
  void write(const T& value) {
    const auto words = std::bit_cast<Words>(value);
    const std::uint64_t version = version_.load(std::memory_order_relaxed);
    version_.store(version + 1, std::memory_order_relaxed);
    for (std::size_t i = 0; i < word_count; ++i) {
      words_[i].store(words[i], std::memory_order_release);
    }
    version_.store(version + 2, std::memory_order_release);
  }

  /// Returns none while a write is in progress, however often it is called.
  [[nodiscard]] std::optional<T> read() const {
    constexpr int tries = 1000;
    for (int i = 0; i < tries; ++i) {
      const std::uint64_t version = version_.load(std::memory_order_acquire);
      Words words{};
      for (std::size_t word = 0; word < word_count; ++word) {
        words[word] = words_[word].load(std::memory_order_acquire);
      }
      const bool whole = version_.load(std::memory_order_relaxed) == version;
      if (whole && version % 2 == 0) return std::bit_cast<T>(words);
    }
    return std::nullopt;
  }

 private:
  std::atomic<std::uint64_t> version_{0};  ///< odd: a write is in progress
  std::array<std::atomic<std::uint64_t>, word_count> words_{};
};

}  // namespace dstrain
