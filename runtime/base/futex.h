#pragma once
#include <atomic>
#include <cstdint>

namespace dstrain {

/// A word that threads or processes sleep on. It may lie in memory shared between processes.
using FutexWord = std::atomic<std::uint32_t>;
static_assert(FutexWord::is_always_lock_free && sizeof(FutexWord) == 4);

/// Sleeps while `word` holds `seen`, for at most `seconds`. May also return for no reason: the
/// caller checks its condition again.
void futex_wait(const FutexWord& word, std::uint32_t seen, double seconds) noexcept;

/// Wakes everyone who sleeps on `word`.
void futex_wake_all(const FutexWord& word) noexcept;

}  // namespace dstrain
