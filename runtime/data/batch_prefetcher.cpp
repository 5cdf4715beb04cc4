#include "runtime/data/batch_prefetcher.h"

#include "runtime/base/error.h"
#include "runtime/numeric/parallel_for.h"

namespace dstrain::data {

BatchPrefetcher::BatchPrefetcher(Load load, std::int64_t steps, const StepBatches& empty)
    : load_(std::move(load)),
      steps_(steps),
      slots_{Slot{empty, none, nullptr}, Slot{empty, none, nullptr}},
      thread_([this] { run(); }) {}

BatchPrefetcher::~BatchPrefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

StepBatches& BatchPrefetcher::take(std::int64_t step) {
  DSTRAIN_CHECK(step >= 0 && step < steps_, "step {} of {}", step, steps_);
  std::unique_lock lock(mutex_);
  Slot& slot = slot_of(step);
  while (slot.step != step) {
    if (requested_ == none) request(step);
    changed_.wait(lock, [&] { return requested_ == none; });
  }
  if (slot.failure) std::rethrow_exception(slot.failure);
  const std::int64_t next = step + 1;
  if (next < steps_ && requested_ == none && slot_of(next).step != next) request(next);
  return slot.batches;
}

void BatchPrefetcher::request(std::int64_t step) {
  slot_of(step).step = none;
  requested_ = step;
  changed_.notify_all();
}

void BatchPrefetcher::run() {
  become_helper_thread();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || requested_ != none; });
    if (stopping_) return;
    Slot& slot = slot_of(requested_);
    const std::int64_t step = requested_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      load_(step, slot.batches);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    slot.step = step;
    slot.failure = failure;
    requested_ = none;
    changed_.notify_all();
  }
}

}  // namespace dstrain::data
