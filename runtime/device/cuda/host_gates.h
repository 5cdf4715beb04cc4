#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/base/unique_handle.h"

namespace dstrain::cuda {

struct PinnedWordsTraits {
  using Raw = std::uint32_t*;
  static constexpr std::uint32_t* null() noexcept { return nullptr; }
  static void release(std::uint32_t* words) noexcept;
};

/// Words of pinned memory for which a stream waits by stream memory operations, so that a point of
/// the host holds it up and no thread. A gate takes a word and waits for a number that is one
/// more than the last that was written there: a word is free again as soon as its gate was opened,
/// whether the stream has come by or not. Shared by the gates. Thread-safe.
class HostGates : public std::enable_shared_from_this<HostGates> {
 public:
  HostGates();

  /// What a stream waits for.
  class Gate {
   public:
    Gate(std::shared_ptr<HostGates> owner, std::size_t word, std::uint32_t number)
        : owner_(std::move(owner)), word_(word), number_(number) {}
    /// Lets the stream pass; `failure`, or null, came before the point.
    void open(std::exception_ptr failure) noexcept;
    [[nodiscard]] bool is_open() const;
    /// Null as long as it is closed.
    [[nodiscard]] std::exception_ptr failure() const;
    [[nodiscard]] std::uint32_t* word() const { return owner_->words_.get() + word_; }
    [[nodiscard]] std::uint32_t number() const { return number_; }

   private:
    std::shared_ptr<HostGates> owner_;  // shared: who opens it may do so after the stream is gone
    std::size_t word_;
    std::uint32_t number_;
    bool open_ = false;  ///< guarded by the owner, as the next one
    std::exception_ptr failure_;
  };

  /// Null where all words are taken.
  std::shared_ptr<Gate> take();

 private:
  static constexpr std::size_t count = 1024;
  mutable std::mutex mutex_;
  UniqueHandle<PinnedWordsTraits> words_;
  std::vector<std::uint32_t> numbers_ = std::vector<std::uint32_t>(count);  ///< last taken, by word
  std::vector<std::size_t> free_;
};

}  // namespace dstrain::cuda
