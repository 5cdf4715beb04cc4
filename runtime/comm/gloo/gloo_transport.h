#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include "runtime/comm/gloo/gloo_communicator.h"

namespace dstrain::comm {

/// Messages over gloo. Its waits cannot be polled, so a thread of our own listens for the alarm
/// and wakes the one that waits. A wait that times out ends all connections of the group: gloo
/// knows no other way.
class GlooTransport final : public Transport {
 public:
  using Device = std::shared_ptr<gloo::transport::Device>;
  GlooTransport(Store& store, GlooOptions options, Device device);
  GlooTransport(const GlooTransport&) = delete;
  GlooTransport& operator=(const GlooTransport&) = delete;
  GlooTransport(GlooTransport&&) = delete;
  GlooTransport& operator=(GlooTransport&&) = delete;
  ~GlooTransport() override;

  [[nodiscard]] int rank() const override { return options_.rank; }
  [[nodiscard]] int size() const override { return options_.size; }
  Message send(int peer, Channel channel, const void* from, Bytes bytes) override;
  Message receive(int peer, Channel channel, void* to, Bytes bytes) override;
  void raise_alarm() noexcept override;
  [[nodiscard]] int alarm_raised_by() const override;
  [[nodiscard]] std::string reason() const override;
  [[nodiscard]] std::int64_t next_group() const override { return 0; }
  std::unique_ptr<Transport> split(const Subgroup& subgroup) override;

 private:
  using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;
  enum class Direction { send, receive };
  class GlooMessage;

  PendingMessage::State wait(gloo::transport::UnboundBuffer& buffer,
                             Direction direction,
                             int peer,
                             Deadline deadline);
  Message start(int peer, Channel channel, Direction direction, void* memory, Bytes bytes);
  void open_lines();
  void listen();
  void watch();
  [[nodiscard]] bool connection_ended(int peer);
  [[nodiscard]] bool has_lost(int peer);
  void call_off_wait();
  void take_alarm(int raised_by) noexcept;
  void lose(const std::string& reason);

  Store& store_;
  GlooOptions options_;
  Device device_;
  std::shared_ptr<gloo::Context> context_;
  mutable std::mutex mutex_;
  gloo::transport::UnboundBuffer* waiting_ = nullptr;  ///< what the operating thread waits for
  Direction waiting_direction_ = Direction::send;
  int waiting_peer_ = -1;
  int alarm_raised_by_ = -1;
  bool closing_ = false;
  std::string reason_;
  int alarm_rank_ = 0;  ///< what is sent and received as an alarm
  std::vector<Buffer> alarms_sent_;
  int heard_ = 0;
  Buffer ear_;
  int never_heard_ = 0;
  std::vector<Buffer> lines_;  ///< by rank: what is never received, and tells of the end
  std::condition_variable closes_;
  std::thread listener_;
  std::thread watcher_;
};

/// The device of this process at `address`: a thread that waits for sockets.
GlooTransport::Device make_gloo_device(const std::string& address);

}  // namespace dstrain::comm
