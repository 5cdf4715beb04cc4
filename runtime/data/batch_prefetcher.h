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
  SampleBuffer samples;                     ///< micro step by micro step B
  std::vector<std::int64_t> first_samples;  ///< per micro step: see BatchLoader::fill
};

/// Loads the batches of the next step on a thread of its own while the current one computes. One
/// thread takes. What a step holds depends on its number alone, so this changes no result.
class BatchPrefetcher {
 public:
  /// Fills the batches of a step, from 0; called on the prefetching thread, one step at a time.
  using Load = std::function<void(std::int64_t step, StepBatches& batches)>;
  /// Steps [0, steps) exist. `empty` has the sizes of a step's batches.
  BatchPrefetcher(Load load, std::int64_t steps, const StepBatches& empty);
  BatchPrefetcher(const BatchPrefetcher&) = delete;
  BatchPrefetcher& operator=(const BatchPrefetcher&) = delete;
  BatchPrefetcher(BatchPrefetcher&&) = delete;
  BatchPrefetcher& operator=(BatchPrefetcher&&) = delete;
  /// Waits until a step that is being loaded is done.
  ~BatchPrefetcher();

  /// The batches of `step`, valid until the next call; loading the step after it begins. Throws
  /// what loading this step threw.
  StepBatches& take(std::int64_t step);

 private:
  static constexpr std::int64_t none = -1;
  struct Slot {
    StepBatches batches;
    std::int64_t step = none;  ///< that was loaded, or failed to be
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
  std::int64_t requested_ = none;  ///< to be loaded, or being loaded
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace dstrain::data
