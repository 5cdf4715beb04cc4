#pragma once
#include "runtime/comm/communicator.h"
#include "runtime/profile/timeline.h"

namespace dstrain::engine {

/// Passes everything on to another communicator and records when each operation runs, on the
/// communication lane. Both parts must outlive it. What split() gives is not recorded.
class RecordedCommunicator final : public comm::Communicator {
 public:
  RecordedCommunicator(comm::Communicator& inner, profile::Timeline& timeline)
      : inner_(inner), timeline_(timeline) {}

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
  template <class Launch>
  void record(profile::Activity activity, Bytes bytes, StreamView stream, Launch&& launch);

  comm::Communicator& inner_;
  profile::Timeline& timeline_;
  double begin_ = 0;  ///< of the operation that runs; belongs to the stream
};

}  // namespace dstrain::engine
