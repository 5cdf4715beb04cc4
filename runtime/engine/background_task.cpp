#include "runtime/engine/background_task.h"

#include <chrono>
#include <exception>

#include "runtime/base/error.h"
#include "runtime/base/exception_text.h"

namespace dstrain::engine {

void BackgroundTask::start(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    DSTRAIN_CHECK(state_ != State::busy, "a task is running");
    state_ = State::busy;
    failure_.clear();
  }
  thread_.run([this, task = std::move(task)] {
    try {
      task();
      finish(State::idle, {});
    } catch (const std::exception& error) {
      finish(State::failed, exception_text(error));
    }
  });
}

void BackgroundTask::finish(State state, std::string failure) {
  const std::lock_guard lock(mutex_);
  state_ = state;
  failure_ = std::move(failure);
  changed_.notify_all();
}

void BackgroundTask::fail(std::string message) {
  finish(State::failed, std::move(message));
}

void BackgroundTask::reset() {
  finish(State::idle, {});
}

BackgroundTask::State BackgroundTask::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

std::string BackgroundTask::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void BackgroundTask::wait(double seconds_max) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(seconds_max),
                    [this] { return state_ != State::busy; });
}

}  // namespace dstrain::engine
