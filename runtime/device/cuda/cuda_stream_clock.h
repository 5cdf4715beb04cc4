#pragma once
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/device/cuda/cuda_stream.h"
#include "runtime/device/stream_clock.h"

namespace dstrain::cuda {

/// Measures times of one GPU's streams with CUDA events. It reuses events, so it keeps as many as
/// were pending at once. To compare the clocks, the GPU passes an event on a separate idle stream
/// while the host reads its clock before and after.
class CudaStreamClock final : public StreamClock {
 public:
  /// `ordinal` is CUDA's number of the GPU. `host` must outlive this.
  CudaStreamClock(int ordinal, const Clock& host);

  void compare() override;
  [[nodiscard]] double error_seconds() const override;
  Stamp stamp(StreamView stream) noexcept override;
  std::optional<double> seconds(Stamp stamp) override;
  void wait_for(Stamp stamp) override;

 private:
  using EventHandle = UniqueHandle<EventTraits>;
  /// A point whose time is known on both clocks.
  struct Anchor {
    EventHandle event;
    double seconds = 0;        ///< by the host's clock
    double error_seconds = 0;  ///< maximum error of that time
  };
  struct StampedEvent {
    EventHandle event;
    std::shared_ptr<const Anchor> anchor;  ///< the last one before the event was recorded
  };
  [[nodiscard]] EventHandle make_event() const;
  std::shared_ptr<Anchor> unused_anchor();
  void measure(Anchor& anchor) const;
  [[nodiscard]] double seconds_between(const EventHandle& first, const EventHandle& second) const;
  void record(StampedEvent& stamped, StreamView stream);
  cudaEvent_t event_of(Stamp stamp) const;

  int ordinal_;
  const Clock& host_;
  UniqueHandle<StreamTraits> stream_;
  mutable std::mutex mutex_;  // guards the members below
  std::vector<std::shared_ptr<Anchor>> anchors_;
  std::shared_ptr<const Anchor> anchor_;  ///< the last one
  double error_seconds_ = 0;
  std::vector<StampedEvent> stamped_;
  std::vector<Stamp> free_;
  std::exception_ptr failure_;  ///< the first failure of stamp()
};

}  // namespace dstrain::cuda
