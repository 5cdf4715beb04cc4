#include "runtime/device/stream.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "runtime/base/parallel_for.h"

namespace dstrain {

/// One thread that runs tasks in order and sleeps when there are none.
class StreamWorker {
 public:
  StreamWorker() : thread_([this] { run(); }) {}
  StreamWorker(const StreamWorker&) = delete;
  StreamWorker& operator=(const StreamWorker&) = delete;
  StreamWorker(StreamWorker&&) = delete;
  StreamWorker& operator=(StreamWorker&&) = delete;
  ~StreamWorker() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void push(std::function<void()> run, Stream::OnFailure on_failure) {
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

  void check() {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }

  void wait_until_idle() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
  }

 private:
  struct Task {
    std::function<void()> run;
    Stream::OnFailure on_failure;
  };

  void run() {
    become_helper_thread();
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
        if (!failed || task.on_failure == Stream::OnFailure::run) task.run();
      } catch (...) {
        failure = std::current_exception();
      }
      task = {};  // before the lock: what it holds may launch its own release on this stream
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

Stream::Stream(Mode mode, Device device) : device_(device) {
  if (mode == Mode::worker_thread) worker_ = std::make_unique<StreamWorker>();
}

Stream::~Stream() = default;

void Stream::enqueue(std::function<void()> task, OnFailure on_failure) {
  worker_->push(std::move(task), on_failure);
}

void Stream::synchronize() {
  if (worker_) worker_->synchronize();
}

void Stream::check() const {
  if (worker_) worker_->check();
}

void Stream::wait_until_idle() noexcept {
  if (worker_) worker_->wait_until_idle();
}

struct Event::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
};

Event Event::record(StreamView stream) {
  auto state = std::make_shared<State>();
  stream.launch_always([state] {
    const std::lock_guard lock(state->mutex);
    state->reached = true;
    state->changed.notify_all();
  });
  return Event(std::move(state));
}

void Event::wait_on(StreamView stream) const {
  stream.launch_always([state = state_] {
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return state->reached; });
  });
}

}  // namespace dstrain
