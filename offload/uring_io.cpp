#include "offload/uring_io.h"

#include <cerrno>
#include <system_error>

#include "offload/queued_io.h"
#include "offload/uring_worker.h"

namespace dstrain::offload {
namespace {

class UringIo final : public QueuedFileIo {
 public:
  UringIo(const AioOptions& options, profile::Timeline* timeline)
      : QueuedFileIo(options, timeline) {
    for (int i = 0; i < options.threads; ++i) {
      workers_.push_back(std::make_unique<UringWorker>(queue_, options));
    }
  }

  bool register_memory(std::span<std::byte> memory) override {
    bool all = true;
    for (const auto& worker : workers_) all = worker->register_memory(memory) && all;
    return all;
  }
  void unregister_memory(std::span<std::byte> memory) noexcept override {
    for (const auto& worker : workers_) worker->unregister_memory(memory);
  }
  [[nodiscard]] const char* name() const noexcept override { return "io_uring"; }

 private:
  void wake() noexcept override {
    for (const auto& worker : workers_) worker->wake();
  }

  std::vector<std::unique_ptr<UringWorker>> workers_;  // gone before the queue that they serve
};

/// Why this process may have no ring: an old kernel, a sandbox, io_uring_disabled, or a limit on
/// locked memory. 0: it may.
int refusal() {
  io_uring ring{};
  const int result = ::io_uring_queue_init(2, &ring, 0);
  if (result == 0) ::io_uring_queue_exit(&ring);
  return result == -ENOSYS || result == -EPERM || result == -ENOMEM ? -result : 0;
}

}  // namespace

Result<std::unique_ptr<AsyncFileIo>> make_uring_io(const AioOptions& options,
                                                   profile::Timeline* timeline) {
  if (const int error = refusal(); error != 0) {
    return Failure{"io_uring is refused: " + std::generic_category().message(error)};
  }
  return std::unique_ptr<AsyncFileIo>(std::make_unique<UringIo>(options, timeline));
}

}  // namespace dstrain::offload
