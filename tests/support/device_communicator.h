#pragma once
#include <algorithm>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/comm/communicator.h"
#include "runtime/tensor/host_access.h"
#include "tests/support/recording_memory.h"

namespace dstrain::test {

/// Passes everything on to another communicator, but refuses what lies outside of the memories that
/// it was given, as one of a device refuses addresses of the host, those of a stack included.
class DeviceCommunicator final : public comm::Communicator {
 public:
  /// All must outlive it.
  DeviceCommunicator(comm::Communicator& inner, std::vector<const RecordingMemory*> memory)
      : inner_(inner), memory_(std::move(memory)) {}

  [[nodiscard]] int rank() const override { return inner_.rank(); }
  [[nodiscard]] int size() const override { return inner_.size(); }
  [[nodiscard]] comm::SumOrder sum_order() const override { return inner_.sum_order(); }
  void all_gather(TensorView shard, TensorView whole, StreamView stream) override {
    inner_.all_gather(check(shard), check(whole), stream);
  }
  void reduce_scatter(TensorView whole, TensorView shard, StreamView stream) override {
    inner_.reduce_scatter(check(whole), check(shard), stream);
  }
  void all_reduce(TensorView values, StreamView stream) override {
    inner_.all_reduce(check(values), stream);
  }
  void all_to_all(TensorView parts, TensorView received, StreamView stream) override {
    inner_.all_to_all(check(parts), check(received), stream);
  }
  void broadcast(TensorView values, int root, StreamView stream) override {
    inner_.broadcast(check(values), root, stream);
  }
  void send(TensorView values, int target, StreamView stream) override {
    inner_.send(check(values), target, stream);
  }
  void receive(TensorView values, int source, StreamView stream) override {
    inner_.receive(check(values), source, stream);
  }
  std::unique_ptr<comm::Communicator> split(Split split) override { return inner_.split(split); }
  void abort() noexcept override { inner_.abort(); }
  void set_observer(comm::CollectiveObserver* observer) override { inner_.set_observer(observer); }

 private:
  [[nodiscard]] TensorView check(TensorView view) const {
    const bool held = std::ranges::any_of(memory_, [&](const RecordingMemory* memory) {
      return memory->holds(host_access(view).data(), view.bytes());
    });
    DSTRAIN_CHECK(held, "{} bytes of no device memory", view.bytes());
    return view;
  }

  comm::Communicator& inner_;
  std::vector<const RecordingMemory*> memory_;
};

}  // namespace dstrain::test
