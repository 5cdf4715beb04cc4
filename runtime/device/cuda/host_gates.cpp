#include "runtime/device/cuda/host_gates.h"

#include <atomic>
#include <utility>

#include "runtime/device/cuda/cuda_check.h"

namespace dstrain::cuda {

void PinnedWordsTraits::release(std::uint32_t* words) noexcept {
  cudaFreeHost(words);
}

HostGates::HostGates() {
  void* words = nullptr;
  DSTRAIN_CUDA_CHECK(cudaHostAlloc(&words, count * sizeof(std::uint32_t), cudaHostAllocPortable),
                     "the words that a stream waits for");
  words_ = UniqueHandle<PinnedWordsTraits>(static_cast<std::uint32_t*>(words));
  for (std::size_t i = 0; i < count; ++i) {
    words_.get()[i] = 0;
    free_.push_back(i);
  }
}

std::shared_ptr<HostGates::Gate> HostGates::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return nullptr;
  const std::size_t word = free_.back();
  free_.pop_back();
  return std::make_shared<Gate>(shared_from_this(), word, ++numbers_[word]);
}

void HostGates::Gate::open(std::exception_ptr failure) noexcept {
  const std::lock_guard lock(owner_->mutex_);
  if (open_) return;
  failure_ = std::move(failure);
  open_ = true;
  // The stream passes from here on, and whoever waits for it finds the failure.
  std::atomic_ref(*word()).store(number_, std::memory_order_release);
  owner_->free_.push_back(word_);
}

bool HostGates::Gate::is_open() const {
  const std::lock_guard lock(owner_->mutex_);
  return open_;
}

std::exception_ptr HostGates::Gate::failure() const {
  const std::lock_guard lock(owner_->mutex_);
  return failure_;
}

}  // namespace dstrain::cuda
