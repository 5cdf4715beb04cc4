#pragma once
#include <functional>
#include <string>

#include <fmt/format.h>

#include "runtime/comm/communicator.h"
#include "runtime/device/cpu_stream_access.h"

namespace dstrain::test {

/// Passes everything on to another communicator. Before an operation runs, `watch` is called with
/// its description, where the operation runs; it may throw.
class WatchedCommunicator final : public comm::Communicator {
 public:
  using Watch = std::function<void(const std::string& operation)>;
  WatchedCommunicator(comm::Communicator& inner, Watch watch)
      : inner_(inner), watch_(std::move(watch)) {}

  [[nodiscard]] int rank() const override { return inner_.rank(); }
  [[nodiscard]] int size() const override { return inner_.size(); }
  [[nodiscard]] comm::SumOrder sum_order() const override { return inner_.sum_order(); }
  void all_gather(TensorView shard, TensorView whole, StreamView stream) override {
    announce("all_gather", shard.bytes(), stream);
    inner_.all_gather(shard, whole, stream);
  }
  void reduce_scatter(TensorView whole, TensorView shard, StreamView stream) override {
    announce("reduce_scatter", whole.bytes(), stream);
    inner_.reduce_scatter(whole, shard, stream);
  }
  void all_reduce(TensorView values, StreamView stream) override {
    announce("all_reduce", values.bytes(), stream);
    inner_.all_reduce(values, stream);
  }
  void all_to_all(TensorView parts, TensorView received, StreamView stream) override {
    announce("all_to_all", parts.bytes(), stream);
    inner_.all_to_all(parts, received, stream);
  }
  void broadcast(TensorView values, int root, StreamView stream) override {
    announce("broadcast", values.bytes(), stream);
    inner_.broadcast(values, root, stream);
  }
  void send(TensorView values, int target, StreamView stream) override {
    announce("send", values.bytes(), stream);
    inner_.send(values, target, stream);
  }
  void receive(TensorView values, int source, StreamView stream) override {
    announce("receive", values.bytes(), stream);
    inner_.receive(values, source, stream);
  }
  std::unique_ptr<comm::Communicator> split(Split split) override { return inner_.split(split); }
  void abort() noexcept override { inner_.abort(); }

 private:
  void announce(const char* what, Bytes bytes, StreamView stream) {
    cpu_stream(stream).launch([this, what, bytes] { watch_(fmt::format("{} {}", what, bytes)); });
  }
  comm::Communicator& inner_;
  Watch watch_;
};

}  // namespace dstrain::test
