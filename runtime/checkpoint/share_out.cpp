#include "runtime/checkpoint/share_out.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace dstrain::checkpoint {
namespace {

class Shared {
 public:
  explicit Shared(std::size_t count) : count_(count) {}

  void run(FunctionRef<void(Next)> work) {
    std::size_t current = 0;
    const auto next = [&]() -> std::optional<std::size_t> {
      current = next_.fetch_add(1);
      return current < count_ ? std::optional(current) : std::nullopt;
    };
    try {
      work(next);
    } catch (...) {
      next_ = count_;
      const std::scoped_lock lock(mutex_);
      if (failure_ != nullptr && failed_ < current) return;
      failure_ = std::current_exception();
      failed_ = current;
    }
  }

  void rethrow() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  const std::size_t count_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr failure_;
  std::size_t failed_ = 0;  ///< the number that failure_ belongs to
};

}  // namespace

void share_out(std::size_t count, int threads, FunctionRef<void(Next)> work) {
  Shared shared(count);
  {
    std::vector<std::jthread> helpers;
    try {
      for (int i = 1; i < threads; ++i) helpers.emplace_back([&] { shared.run(work); });
    } catch (const std::system_error&) {  // no more threads: the running ones do all of it
    }
    shared.run(work);
  }
  shared.rethrow();
}

}  // namespace dstrain::checkpoint
