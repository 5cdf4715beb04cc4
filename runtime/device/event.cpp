#include "runtime/device/event.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

namespace dstrain {

struct Event::State {
  void reach(std::exception_ptr failed) {
    const std::lock_guard lock(mutex);
    reached = true;
    failure = std::move(failed);
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return reached; });
    if (failure) std::rethrow_exception(failure);
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
  std::exception_ptr failure;
};

Event Event::record(StreamView stream) {
  auto state = std::make_shared<State>();
  stream.launch_always([state, stream] { state->reach(stream.failure()); });
  return Event(std::move(state));
}

Event Event::record(HostQueue& queue) {
  auto state = std::make_shared<State>();
  queue.run_always([state, &queue] { state->reach(queue.failure()); });
  return Event(std::move(state));
}

void Event::wait_on(StreamView stream) const {
  stream.launch_always([state = state_] { state->wait(); });
}

void Event::wait_on(HostQueue& queue) const {
  queue.run_always([state = state_] { state->wait(); });
}

}  // namespace dstrain
