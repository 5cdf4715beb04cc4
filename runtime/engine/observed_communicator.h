#pragma once
#include "runtime/base/progress_page.h"
#include "runtime/comm/communicator.h"
#include "runtime/profile/timeline.h"

namespace dstrain::engine {

/// Passes everything on to another communicator and tells when each operation runs: the timeline,
/// on its communication lane, and the page that the agent reads. What split() gives is not
/// observed.
class ObservedCommunicator final : public comm::Communicator {
 public:
  /// Both must outlive it; null: nobody is told.
  struct Observers {
    profile::Timeline* timeline = nullptr;
    ProgressPage* progress = nullptr;
  };
  ObservedCommunicator(comm::Communicator& inner, const Observers& observers)
      : inner_(inner), observers_(observers) {}

  [[nodiscard]] int rank() const override { return inner_.rank(); }
  [[nodiscard]] int size() const override { return inner_.size(); }
  [[nodiscard]] comm::SumOrder sum_order() const override { return inner_.sum_order(); }
  [[nodiscard]] MemoryResource& memory() override { return inner_.memory(); }
  void all_gather(TensorView shard, TensorView whole, StreamView stream) override;
  void reduce_scatter(TensorView whole, TensorView shard, StreamView stream) override;
  void all_reduce(TensorView values, StreamView stream) override;
  void all_to_all(TensorView parts, TensorView received, StreamView stream) override;
  void broadcast(TensorView values, int root, StreamView stream) override;
  void send(TensorView values, int target, StreamView stream) override;
  void receive(TensorView values, int source, StreamView stream) override;
  std::unique_ptr<comm::Communicator> split(Split split) override { return inner_.split(split); }
  void abort() noexcept override { inner_.abort(); }

 private:
  /// What this rank hands in, and the other end where there is one.
  struct Operation {
    profile::Activity activity;
    DType dtype = DType::f32;
    std::int64_t numel = 0;
    int peer = -1;
  };
  static Operation operation_on(profile::Activity activity, TensorView values, int peer = -1) {
    return {activity, values.dtype(), values.numel(), peer};
  }
  template <class Launch>
  void observe(const Operation& operation, StreamView stream, Launch&& launch);
  void begin(const Operation& operation);
  void end(const Operation& operation);

  comm::Communicator& inner_;
  Observers observers_;
  double begin_ = 0;  ///< of the operation that runs; belongs to the stream
};

}  // namespace dstrain::engine
