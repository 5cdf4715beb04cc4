#include "runtime/device/host_queue.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "runtime/numeric/parallel_for.h"

namespace dstrain {

/// Runs tasks in order and sleeps when there are none.
class HostQueue::Thread {
 public:
  /// `prepare` is the first task.
  explicit Thread(std::function<void()> prepare)
      : thread_([this, prepare = std::move(prepare)] {
          prepare();
          run();
        }) {}
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  Thread(Thread&&) = delete;
  Thread& operator=(Thread&&) = delete;
  ~Thread() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void push(std::function<void()> run, OnFailure on_failure) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back({std::move(run), on_failure});
    }
    changed_.notify_all();
  }

  void synchronize() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  [[nodiscard]] std::exception_ptr failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
  }

 private:
  struct Task {
    std::function<void()> run;
    OnFailure on_failure;
  };

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
      const bool failed = failure_ != nullptr;
      lock.unlock();
      std::exception_ptr failure;
      try {
        if (!failed || task.on_failure == OnFailure::run) task.run();
      } catch (...) {
        failure = std::current_exception();
      }
      task = {};  // before the lock: its captures may be released through this queue
      lock.lock();
      if (failure && !failure_) failure_ = failure;
      busy_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::exception_ptr failure_;
  bool busy_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

HostQueue::HostQueue(Mode mode) {
  switch (mode) {
    case Mode::inline_on_caller:
      return;
    case Mode::worker_thread:
      thread_ = std::make_unique<Thread>(become_helper_thread);
      return;
    case Mode::compute_thread:
      thread_ = std::make_unique<Thread>(
          [threads = compute_threads()] { become_compute_thread(threads); });
      return;
  }
}

HostQueue::~HostQueue() = default;

void HostQueue::enqueue(std::function<void()> task, OnFailure on_failure) {
  thread_->push(std::move(task), on_failure);
}

void HostQueue::synchronize() {
  if (thread_) thread_->synchronize();
}

std::exception_ptr HostQueue::failure() const {
  return thread_ ? thread_->failure() : nullptr;
}

void HostQueue::wait_until_idle() noexcept {
  if (thread_) thread_->wait_until_idle();
}

}  // namespace dstrain
