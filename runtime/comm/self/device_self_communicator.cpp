#include "runtime/comm/self/device_self_communicator.h"

#include <atomic>

#include "runtime/base/error.h"
#include "runtime/comm/checked_call.h"
#include "runtime/ops/convert.h"

namespace dstrain::comm {
namespace {

class DeviceSelfCommunicator final : public Communicator {
 public:
  explicit DeviceSelfCommunicator(std::unique_ptr<Communicator> host) : host_(std::move(host)) {}

  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }
  [[nodiscard]] SumOrder sum_order() const override { return SumOrder::by_rank; }
  void all_gather(TensorView shard, TensorView whole, StreamView stream) override {
    run(all_gather_call(shard, whole, {}), shard, whole, stream);
  }
  void reduce_scatter(TensorView whole, TensorView shard, StreamView stream) override {
    run(reduce_scatter_call(whole, shard, {}), whole, shard, stream);
  }
  void all_reduce(TensorView values, StreamView stream) override {
    run(all_reduce_call(values), values, values, stream);
  }
  void all_to_all(TensorView parts, TensorView received, StreamView stream) override {
    run(all_to_all_call(parts, received, {}), parts, received, stream);
  }
  void broadcast(TensorView values, int root, StreamView stream) override {
    run(broadcast_call(values, root, {}), values, values, stream);
  }
  void send(TensorView values, int target, StreamView /*stream*/) override {
    send_call(values, target, {});  // throws: there is no other rank
  }
  void receive(TensorView values, int source, StreamView /*stream*/) override {
    receive_call(values, source, {});
  }
  std::unique_ptr<Communicator> split(Split /*split*/) override {
    return make_device_self_communicator(nullptr);
  }
  void abort() noexcept override { aborted_ = true; }

 private:
  void run(const Call& call, const TensorView& from, const TensorView& to, StreamView stream) {
    if (aborted_) fail(ErrorCode::aborted, "{}: aborted by rank 0", to_string(call));
    if (observer() != nullptr) observer()->begin(call);
    launch_observed(call, stream, [&] {
      if (from.numel() > 0 && !from.begins_with(to)) {
        ops::convert(from.reshaped({from.numel()}), to.reshaped({to.numel()}), stream);
      }
    });
    if (observer() != nullptr) observer()->end(call);
  }

  std::unique_ptr<Communicator> host_;
  std::atomic<bool> aborted_{false};
};

}  // namespace

std::unique_ptr<Communicator> make_device_self_communicator(std::unique_ptr<Communicator> host) {
  return std::make_unique<DeviceSelfCommunicator>(std::move(host));
}

}  // namespace dstrain::comm
