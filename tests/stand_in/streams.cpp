#include "tests/stand_in/streams.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include "tests/stand_in/device_memory.h"
#include "tests/stand_in/draws.h"

namespace dstrain::stand_in {
namespace {

/// Delays one task in four, by up to the time that the host needs for hundreds of launches.
std::chrono::microseconds lateness(Draws draws) {
  return std::chrono::microseconds(draws.one_in(4) ? draws.below(1000) : 0);
}

}  // namespace

std::mutex& Driver::mutex() {
  static std::mutex one;
  return one;
}

Queue::Queue(Device& device) : device_(device), thread_([this] { run(); }) {}

Queue::~Queue() {
  {
    const std::lock_guard lock(device_.mutex_);
    ending_ = true;
    device_.changed_.notify_all();
  }
  thread_.join();
}

void Queue::run() {
  std::optional<MemoryAccess> access;
  std::unique_lock lock(device_.mutex_);
  while (true) {
    const bool goes_on =
        !tasks_.empty() && tasks_.front().works && tasks_.front().late.count() == 0;
    if (!goes_on) access.reset();
    device_.changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (tasks_.empty()) break;
    const auto late = tasks_.front().late;
    if (late.count() > 0) device_.changed_.wait_for(lock, late, [] { return false; });
    {
      const Task task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
      lock.unlock();
      if (task.works && !access) access.emplace();
      task.run();
    }
    lock.lock();
    busy_ = false;
    device_.changed_.notify_all();
  }
  ended_ = true;
}

void Queue::give(Task task) {
  const std::lock_guard lock(device_.mutex_);
  tasks_.push_back(std::move(task));
  device_.changed_.notify_all();
}

void Queue::give(std::function<void()> task) {
  give(Task{std::move(task), false, lateness(Draws::next())});
}

void Queue::give_work(std::function<void()> task) {
  give(Task{std::move(task), true, lateness(Draws::next())});
}

void Queue::wait_until_idle() {
  std::unique_lock lock(device_.mutex_);
  device_.changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
}

bool Queue::idle() {
  const std::lock_guard lock(device_.mutex_);
  return tasks_.empty() && !busy_;
}

Queue& Device::make_queue() {
  std::list<Queue> ended;  // joined without the lock
  const std::lock_guard lock(mutex_);
  for (auto at = queues_.begin(); at != queues_.end();) {
    const auto next = std::next(at);
    if (at->ended_) ended.splice(ended.begin(), queues_, at);
    at = next;
  }
  return queues_.emplace_back(*this);
}

void Device::end_queue(Queue& queue) {
  const std::lock_guard lock(mutex_);
  queue.ending_ = true;
  changed_.notify_all();
}

void Device::wait_until_idle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] {
    return std::ranges::all_of(
        queues_, [](const Queue& queue) { return queue.tasks_.empty() && !queue.busy_; });
  });
}

void Device::wait_for(const Moment& moment) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return moment.reached.load(); });
}

void Device::reach(Moment& moment) {
  const std::lock_guard lock(mutex_);
  const std::chrono::duration<double, std::milli> now =
      std::chrono::steady_clock::now().time_since_epoch();
  moment.at_ms = now.count() + passed_ms_;
  moment.reached = true;
  changed_.notify_all();
}

void Device::let_pass(double ms) {
  const std::lock_guard lock(mutex_);
  passed_ms_ += ms;
}

void Device::load(const void* kernel) {
  if (std::ranges::find(loaded_, kernel) != loaded_.end()) return;
  wait_until_idle();
  loaded_.push_back(kernel);
}

/// Never destroyed, because streams still run when a program calls exit().
Device& device() {
  static Device& one = *new Device;
  return one;
}

}  // namespace dstrain::stand_in
