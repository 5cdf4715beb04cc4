#include "runtime/comm/self/self_communicator.h"

#include <atomic>

#include "runtime/comm/host_communicator.h"
#include "runtime/comm/host_sum.h"

namespace dstrain::comm {
namespace {

class SelfCommunicator final : public HostCommunicator {
 public:
  SelfCommunicator() : HostCommunicator({.rank = 0, .size = 1}) {}

  std::unique_ptr<Communicator> split(Split /*split*/) override { return make_self_communicator(); }
  void abort() noexcept override { aborted_ = true; }

 protected:
  void run_all_gather(const Call& call, HostView shard, HostView whole) override {
    check_running(call);
    copy_bytes(shard.data(), whole.data(), shard.bytes());
  }
  void run_reduce_scatter(const Call& call, HostView whole, HostView shard) override {
    check_running(call);
    copy_bytes(whole.data(), shard.data(), whole.bytes());
  }
  void run_all_reduce(const Call& call, HostView /*values*/) override { check_running(call); }
  void run_all_to_all(const Call& call, HostView parts, HostView received) override {
    check_running(call);
    copy_bytes(parts.data(), received.data(), parts.bytes());
  }
  void run_broadcast(const Call& call, HostView /*values*/) override { check_running(call); }
  void run_send(const Call& call, HostView /*values*/) override { no_peer(call); }
  void run_receive(const Call& call, HostView /*values*/) override { no_peer(call); }

 private:
  void check_running(const Call& call) const {
    if (aborted_) fail(ErrorCode::aborted, "{}: aborted by rank 0", to_string(call));
  }
  [[noreturn]] static void no_peer(const Call& call) {
    fail(ErrorCode::internal, "{}: a group of one has no peer", to_string(call));
  }

  std::atomic<bool> aborted_{false};
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator() {
  return std::make_unique<SelfCommunicator>();
}

}  // namespace dstrain::comm
