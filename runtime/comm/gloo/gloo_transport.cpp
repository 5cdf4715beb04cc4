#include "runtime/comm/gloo/gloo_transport.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gloo/common/error.h>
#include <gloo/context.h>
#include <gloo/transport/unbound_buffer.h>

#include "runtime/base/error.h"
#include "runtime/comm/gloo/gloo_mesh.h"
#include "runtime/comm/message/message_communicator.h"

namespace dstrain::comm {
namespace {

using State = PendingMessage::State;
using std::chrono::milliseconds;

constexpr std::uint64_t control_slot = 1;
constexpr std::uint64_t data_slot = 2;
constexpr std::uint64_t alarm_slot = 3;
constexpr std::uint64_t line_slot = 4;

/// How long a rank that raised the alarm and goes waits until it is heard.
constexpr milliseconds alarm_wait(500);
/// How often a rank that waits looks whether its peer is still there.
constexpr milliseconds watch_interval(100);

milliseconds to_ms(double seconds) {
  return milliseconds(static_cast<std::int64_t>(std::ceil(seconds * 1e3)));
}

/// A rank is ready before others are; if it left at once, they would find it closed.
void wait_until_all_ready(Store& store, const GlooOptions& options, double seconds) {
  const std::string prefix = "gloo/" + options.name + "/ready";
  if (store.add(prefix + "/count", 1) == options.size) store.set(prefix, "");
  store.get(prefix, seconds);
}

}  // namespace

/// Messages over gloo. Its waits cannot be polled, so a thread of our own listens for the alarm
/// and wakes the one that waits. A wait that times out ends all connections of the group: gloo
/// knows no other way.
class GlooTransport final : public Transport {
 public:
  GlooTransport(Store& store, GlooOptions options, GlooDevice device);
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
  GlooDevice device_;
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
  int alarm_received_ = 0;
  Buffer alarm_buffer_;
  int never_received_ = 0;
  std::vector<Buffer> lines_;  ///< by rank: what is never received, and tells of the end
  std::condition_variable closes_;
  std::thread listener_;
  std::thread watcher_;
};

class GlooTransport::GlooMessage final : public PendingMessage {
 public:
  GlooMessage(GlooTransport& transport, Buffer buffer, Direction direction, int peer)
      : transport_(transport), buffer_(std::move(buffer)), direction_(direction), peer_(peer) {}
  GlooMessage(const GlooMessage&) = delete;
  GlooMessage& operator=(const GlooMessage&) = delete;
  GlooMessage(GlooMessage&&) = delete;
  GlooMessage& operator=(GlooMessage&&) = delete;
  /// gloo's thread may be about to say that the message is done: the last wait, called off at once,
  /// lets it finish.
  ~GlooMessage() override {
    if (done_ || !buffer_) return;
    try {
      direction_ == Direction::send ? buffer_->abortWaitSend() : buffer_->abortWaitRecv();
      direction_ == Direction::send ? buffer_->waitSend() : buffer_->waitRecv();
    } catch (const gloo::Exception&) {  // that peer has gone
    }
  }
  State wait(Deadline deadline) override {
    const State state =
        buffer_ ? transport_.wait(*buffer_, direction_, peer_, deadline) : State::lost;
    done_ = state == State::done;
    return state;
  }
  bool is_lost() override { return !buffer_ || transport_.has_lost(peer_); }

 private:
  GlooTransport& transport_;
  Buffer buffer_;  ///< null: it could not be started
  Direction direction_;
  int peer_;
  bool done_ = false;
};

GlooTransport::GlooTransport(Store& store, GlooOptions options, GlooDevice device)
    : store_(store), options_(std::move(options)), device_(std::move(device)) {
  try {
    context_ = connect_mesh(store_, options_, device_);
    open_lines();
    wait_until_all_ready(store_, options_, join_seconds(options_));
  } catch (const Error&) {
    if (context_) context_->closeConnections();  // as in the destructor
    throw;
  } catch (const std::exception& error) {  // gloo's have no base of their own
    if (context_) context_->closeConnections();
    fail(ErrorCode::comm,
         "gloo: rank {} cannot connect to the other ranks from {}: {}: is there a firewall between "
         "the nodes?",
         options_.rank, options_.address, words_of(error));
  }
  if (size() == 1) return;
  listener_ = std::thread([this] { listen(); });
  watcher_ = std::thread([this] { watch(); });
}

/// On which alarms come, and the end of a connection.
void GlooTransport::open_lines() {
  std::vector<int> others;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) others.push_back(peer);
  }
  if (others.empty()) return;
  alarm_buffer_ = context_->createUnboundBuffer(&alarm_received_, sizeof(alarm_received_));
  alarm_buffer_->recv(others, alarm_slot);
  lines_.resize(static_cast<std::size_t>(size()));
  for (const int peer : others) {
    Buffer& line = lines_[static_cast<std::size_t>(peer)];
    line = context_->createUnboundBuffer(&never_received_, sizeof(never_received_));
    line->recv(peer, line_slot);
  }
}

GlooTransport::~GlooTransport() {
  if (!listener_.joinable()) return;
  for (const Buffer& alarm : alarms_sent_) {
    try {
      alarm->waitSend(alarm_wait);
    } catch (const std::exception&) {  // that peer has gone
    }
  }
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  closes_.notify_all();
  alarm_buffer_->abortWaitRecv();
  listener_.join();
  watcher_.join();
  // Where a peer leaves first, gloo's thread tells these buffers, which then must still be there.
  context_->closeConnections();
}

Message GlooTransport::send(int peer, Channel channel, const void* from, Bytes bytes) {
  return start(peer, channel, Direction::send, const_cast<void*>(from), bytes);
}

Message GlooTransport::receive(int peer, Channel channel, void* to, Bytes bytes) {
  return start(peer, channel, Direction::receive, to, bytes);
}

Message GlooTransport::start(
    int peer, Channel channel, Direction direction, void* memory, Bytes bytes) {
  Buffer buffer = context_->createUnboundBuffer(memory, static_cast<std::size_t>(bytes));
  const std::uint64_t slot = channel == Channel::control ? control_slot : data_slot;
  try {
    direction == Direction::send ? buffer->send(peer, slot) : buffer->recv(peer, slot);
  } catch (const gloo::Exception& error) {
    lose(words_of(error));
    buffer.reset();
  }
  return std::make_unique<GlooMessage>(*this, std::move(buffer), direction, peer);
}

State GlooTransport::wait(gloo::transport::UnboundBuffer& buffer,
                          Direction direction,
                          int peer,
                          Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (alarm_raised_by_ >= 0) return State::alarmed;
    waiting_ = &buffer;
    waiting_direction_ = direction;
    waiting_peer_ = peer;
  }
  State state = State::alarmed;
  try {
    const milliseconds timeout = to_ms(deadline.remaining_seconds());
    const bool done = direction == Direction::send ? buffer.waitSend(nullptr, timeout)
                                                   : buffer.waitRecv(nullptr, timeout);
    if (done) state = State::done;
  } catch (const gloo::Exception& error) {
    state = deadline.passed() ? State::pending : State::lost;
    lose(words_of(error));
  }
  const std::lock_guard lock(mutex_);
  waiting_ = nullptr;
  const bool cut_off = state == State::alarmed && alarm_raised_by_ < 0;
  return cut_off ? State::lost : state;
}

void GlooTransport::lose(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (reason_.empty()) reason_ = reason;
}

void GlooTransport::listen() {
  try {
    // As good as for ever; a wait that times out would end the connections.
    while (!alarm_buffer_->waitRecv(nullptr, std::chrono::hours(24 * 3650))) {
      const std::lock_guard lock(mutex_);
      if (closing_) return;
    }
    take_alarm(alarm_received_);
  } catch (const std::exception& error) {
    lose(words_of(error));
  }
}

void GlooTransport::take_alarm(int raised_by) noexcept {
  const std::lock_guard lock(mutex_);
  if (alarm_raised_by_ < 0) alarm_raised_by_ = raised_by;
  call_off_wait();
}

/// Under the mutex.
void GlooTransport::call_off_wait() {
  if (waiting_ == nullptr) return;
  waiting_direction_ == Direction::send ? waiting_->abortWaitSend() : waiting_->abortWaitRecv();
}

/// Where a connection ends in the middle of a message, gloo lets the wait for it go on.
void GlooTransport::watch() {
  std::unique_lock lock(mutex_);
  while (!closes_.wait_for(lock, watch_interval, [this] { return closing_; })) {
    if (waiting_ != nullptr && connection_ended(waiting_peer_)) call_off_wait();
  }
}

/// Under the mutex. A wait that is called off at once still says so first when the connection has
/// ended.
bool GlooTransport::connection_ended(int peer) {
  gloo::transport::UnboundBuffer& line = *lines_[static_cast<std::size_t>(peer)];
  try {
    line.abortWaitRecv();
    line.waitRecv();
    return false;
  } catch (const gloo::Exception& error) {
    if (reason_.empty()) reason_ = words_of(error);
    return true;
  }
}

bool GlooTransport::has_lost(int peer) {
  const std::lock_guard lock(mutex_);
  return connection_ended(peer);
}

void GlooTransport::raise_alarm() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (alarm_raised_by_ >= 0) return;
    alarm_rank_ = rank();
  }
  take_alarm(rank());
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    try {
      Buffer alarm = context_->createUnboundBuffer(&alarm_rank_, sizeof(alarm_rank_));
      alarm->send(peer, alarm_slot);
      const std::lock_guard lock(mutex_);
      alarms_sent_.push_back(std::move(alarm));
    } catch (const std::exception&) {  // that peer has gone
    }
  }
}

int GlooTransport::alarm_raised_by() const {
  const std::lock_guard lock(mutex_);
  return alarm_raised_by_;
}

std::string GlooTransport::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

std::unique_ptr<Transport> GlooTransport::split(const Subgroup& subgroup) {
  GlooOptions options = options_;
  options.rank = subgroup.rank;
  options.size = static_cast<int>(subgroup.members.size());
  options.name += fmt::format("/{}.{}", subgroup.split, subgroup.members.front());
  return std::make_unique<GlooTransport>(store_, std::move(options), device_);
}

std::unique_ptr<Transport> make_gloo_transport(Store& store, const GlooOptions& options) {
  return std::make_unique<GlooTransport>(store, options, make_gloo_device(options.address));
}

std::unique_ptr<Communicator> make_gloo_communicator(Store& store, const GlooOptions& options) {
  return std::make_unique<MessageCommunicator>(make_gloo_transport(store, options),
                                               options.timeout_seconds);
}

bool has_gloo() {
  return true;
}

}  // namespace dstrain::comm
