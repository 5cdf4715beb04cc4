#pragma once
#include <atomic>
#include <cstdint>

namespace dstrain {

/// A word that threads or processes sleep on. It may be in memory shared between processes.
using FutexWord = std::atomic<std::uint32_t>;
static_assert(FutexWord::is_always_lock_free && sizeof(FutexWord) == 4);

/// Sleeps while `word` holds `seen`, for at most `seconds`. May also wake spuriously: the caller
/// must check its condition again.
void futex_wait(const FutexWord& word, std::uint32_t seen, double seconds) noexcept;

/// Wakes all threads that sleep on `word`.
void futex_wake_all(const FutexWord& word) noexcept;

/// A counter that one thread or process increments and others wait for; it may be in shared memory.
/// All zero at the start. It may wrap around: counts are compared by their distance.
struct WaitableCounter {
  FutexWord count{0};
  FutexWord sleepers{0};

  /// Earlier writes are visible to threads that see the new count.
  void increment() noexcept {
    count.fetch_add(1);
    if (sleepers.load() != 0) futex_wake_all(count);
  }

  [[nodiscard]] bool reached(std::uint32_t target) const noexcept {
    return static_cast<std::int32_t>(count.load() - target) >= 0;
  }

  /// Sleeps until `target` is reached, for at most `seconds`. May return early. Both sides change
  /// one word and then read the other in one total order, so no wake-up is lost.
  void sleep_until(std::uint32_t target, double seconds) noexcept {
    sleepers.fetch_add(1);
    const std::uint32_t seen = count.load();
    if (static_cast<std::int32_t>(seen - target) < 0) futex_wait(count, seen, seconds);
    sleepers.fetch_sub(1);
  }
};

}  // namespace dstrain
