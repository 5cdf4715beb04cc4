#pragma once
#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "runtime/data/sample_rows.h"

namespace dstrain::data {

/// The micro-batches of one rank and one optimizer step.
struct StepBatches {
  SampleBuffer samples;                     ///< B samples for each micro step, in order
  std::vector<std::int64_t> first_samples;  ///< per micro step: see BatchLoader::fill
};

/// Loads the batches of the next step on its own thread while the current step computes. For one
/// consumer thread. The contents of a step depend only on its number, so this changes no result.
class BatchPrefetcher {
 public:
  /// Fills the batches of a step, counted from 0. Called on the prefetching thread, one step at a
  /// time.
  using Load = std::function<void(std::int64_t step, StepBatches& batches)>;
  /// Steps [0, steps) exist. `empty` has the sizes of a step's batches.
  BatchPrefetcher(Load load, std::int64_t steps, const StepBatches& empty);
  BatchPrefetcher(const BatchPrefetcher&) = delete;
  BatchPrefetcher& operator=(const BatchPrefetcher&) = delete;
  BatchPrefetcher(BatchPrefetcher&&) = delete;
  BatchPrefetcher& operator=(BatchPrefetcher&&) = delete;
  /// Waits until a step that is being loaded is done.
  ~BatchPrefetcher();

  /// Returns the batches of `step`, valid until the next call, and begins to load the next step.
  /// Throws the exception of loading this step.
  StepBatches& take(std::int64_t step);

 private:
  static constexpr std::int64_t none = -1;
  struct Slot {
    StepBatches batches;
    std::int64_t step = none;  ///< the step that was loaded or failed to load
    std::exception_ptr failure;
  };
  void run();
  void request(std::int64_t step);
  [[nodiscard]] Slot& slot_of(std::int64_t step) {
    return slots_[static_cast<std::size_t>(step % 2)];
  }

  Load load_;
  std::int64_t steps_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Slot, 2> slots_;      ///< by the parity of the step
  std::int64_t requested_ = none;  ///< the step that is loaded or must be loaded next
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace dstrain::data
