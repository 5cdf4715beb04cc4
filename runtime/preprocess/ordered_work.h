#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/function_ref.h"

namespace dstrain::preprocess {

/// Processes items with several threads and returns the results in the order of the items.
///
/// `next` returns the items, one call at a time on any of the threads, and nothing at the end;
/// `work` runs on many at once; `take` is called on the thread that calls run(), which returns
/// when all results are taken. At most four items per thread are in progress. An exception of one
/// of the three is thrown after all earlier results are taken.
template <class Item, class Output>
class OrderedWork {
 public:
  struct Steps {
    FunctionRef<std::optional<Item>()> next;
    FunctionRef<Output(Item& item)> work;
    FunctionRef<void(Item& item, Output& output)> take;
  };

  OrderedWork(int threads, Steps steps) : threads_(threads), steps_(steps) {}

  /// Call once.
  void run() {
    std::vector<std::jthread> workers;
    workers.reserve(static_cast<std::size_t>(threads_));
    for (std::int64_t i = 0; i < threads_; ++i) workers.emplace_back([this] { run_worker(); });
    try {
      take_all();
    } catch (...) {
      stop();
      throw;
    }
  }

 private:
  /// An item with its output; without an item: the end.
  struct Done {
    std::optional<Item> item;
    std::optional<Output> output;
    std::exception_ptr failure;
  };

  void run_worker() {
    while (auto item = read()) {
      auto& [number, done] = *item;
      if (!done.failure && done.item) {
        try {
          done.output.emplace(steps_.work(*done.item));
        } catch (...) {
          done.failure = std::current_exception();
        }
      }
      const bool is_last = !done.output;
      give(number, std::move(done));
      if (is_last) return;
    }
  }

  /// Returns the next item and its number; nothing once no more are wanted.
  std::optional<std::pair<std::int64_t, Done>> read() {
    const std::lock_guard reading(reading_);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || read_ < taken_ + 4 * threads_; });
      if (stopped_) return std::nullopt;
    }
    Done done;
    try {
      done.item = steps_.next();
    } catch (...) {
      done.failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    if (!done.item) stopped_ = true;
    return std::pair(read_++, std::move(done));
  }

  void give(std::int64_t number, Done done) {
    const std::lock_guard lock(mutex_);
    if (done.failure) stopped_ = true;
    done_.emplace(number, std::move(done));
    changed_.notify_all();
  }

  void take_all() {
    for (;;) {
      Done done = wait_for_next();
      if (done.failure) std::rethrow_exception(done.failure);
      if (!done.item) return;
      steps_.take(*done.item, *done.output);
    }
  }

  Done wait_for_next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_.contains(taken_); });
    Done done = std::move(done_.extract(taken_).mapped());
    ++taken_;
    changed_.notify_all();
    return done;
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

  std::int64_t threads_;
  Steps steps_;
  std::mutex reading_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int64_t, Done> done_;
  std::int64_t read_ = 0;   ///< number of items begun
  std::int64_t taken_ = 0;  ///< number of those taken
  bool stopped_ = false;    ///< no more items must be begun
};

}  // namespace dstrain::preprocess
