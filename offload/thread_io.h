#pragma once
#include <thread>
#include <vector>

#include "offload/request_queue.h"

namespace dstrain::offload {

/// Uses threads that each make one blocking pread(2) or pwrite(2) at a time: one thread per block
/// that may be in flight, at most 64. Works everywhere.
class ThreadIo final : public QueuedFileIo {
 public:
  explicit ThreadIo(const AioOptions& options, profile::Timeline* timeline = nullptr);
  ThreadIo(const ThreadIo&) = delete;
  ThreadIo& operator=(const ThreadIo&) = delete;
  ThreadIo(ThreadIo&&) = delete;
  ThreadIo& operator=(ThreadIo&&) = delete;
  ~ThreadIo() override;

  bool register_memory(std::span<std::byte> /*memory*/) override { return false; }
  void unregister_memory(std::span<std::byte> /*memory*/) noexcept override {}
  [[nodiscard]] const char* name() const noexcept override { return "threads"; }

 private:
  void work();
  void stop() noexcept;

  std::vector<std::thread> threads_;
};

}  // namespace dstrain::offload
