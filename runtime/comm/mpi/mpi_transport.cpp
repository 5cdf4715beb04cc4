#include "runtime/comm/mpi/mpi_transport.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstddef>

#include "runtime/base/error.h"
#include "runtime/comm/message/message_communicator.h"
#include "runtime/comm/mpi/mpi_library.h"

namespace dstrain::comm {
namespace {

using State = PendingMessage::State;

constexpr int alarm_channel = 2;
constexpr int channels = 3;

/// How often a rank that waits for data looks whether the peer has said farewell.
constexpr double look_around_seconds = 0.05;
/// How long a receive that was given up may take to be released.
constexpr double release_seconds = 0.5;

}  // namespace

/// Messages over MPI. Waits poll, because only calls drive MPI: a rank that waits gives its core to
/// others and then sleeps for some microseconds at a time.
class MpiTransport final : public Transport {
 public:
  struct Place {
    std::vector<int> members;  ///< ranks in MPI_COMM_WORLD, in the order of this group
    int rank = 0;
    std::int64_t group = 0;  ///< decides the tags
    Bytes piece_bytes = gibibyte;
  };
  MpiTransport(std::shared_ptr<MpiLibrary> library, Place place);
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;
  MpiTransport(MpiTransport&&) = delete;
  MpiTransport& operator=(MpiTransport&&) = delete;
  ~MpiTransport() override;

  [[nodiscard]] int rank() const override { return place_.rank; }
  [[nodiscard]] int size() const override { return static_cast<int>(place_.members.size()); }
  Message send(int peer, Channel channel, const void* from, Bytes bytes) override;
  Message receive(int peer, Channel channel, void* to, Bytes bytes) override;
  void raise_alarm() noexcept override;
  [[nodiscard]] int alarm_raised_by() const override { return alarm_raised_by_; }
  [[nodiscard]] std::string reason() const override { return reason_; }
  [[nodiscard]] std::int64_t next_group() const override { return library_->next_group; }
  std::unique_ptr<Transport> split(const Subgroup& subgroup) override;

 private:
  enum class Direction { send, receive };
  using Request = void*;
  class MpiMessage;

  [[nodiscard]] int tag(int channel) const;
  Request start(Direction direction, int peer, int tag, std::byte* memory, Bytes bytes);
  Message start_all(Direction direction, int peer, Channel channel, std::byte* memory, Bytes bytes);
  bool test(Request& request);
  void release(Request& request, Direction direction) noexcept;
  void look_for_alarm();

  std::shared_ptr<MpiLibrary> library_;  // shared by all groups of the process
  Place place_;
  std::string reason_;
  std::atomic<int> alarm_raised_by_{-1};
  int alarm_received_ = -1;
  Request alarm_request_ = nullptr;
  int own_alarm_ = 0;
  std::vector<Request> alarms_sent_;
};

class MpiTransport::MpiMessage final : public PendingMessage {
 public:
  MpiMessage(MpiTransport& transport, Direction direction)
      : transport_(transport), direction_(direction) {}
  MpiMessage(const MpiMessage&) = delete;
  MpiMessage& operator=(const MpiMessage&) = delete;
  MpiMessage(MpiMessage&&) = delete;
  MpiMessage& operator=(MpiMessage&&) = delete;
  ~MpiMessage() override {
    for (Request& request : requests_) transport_.release(request, direction_);
  }

  void add(Request request) { requests_.push_back(request); }

  State wait(Deadline deadline) override {
    const Deadline look_around = deadline.at_most(look_around_seconds);
    for (int looks = 0;; ++looks) {
      try {
        while (!requests_.empty() && transport_.test(requests_.back())) requests_.pop_back();
        if (requests_.empty()) return State::done;
        transport_.look_for_alarm();
      } catch (const Error& error) {
        transport_.reason_ = error.what();
        return State::lost;
      }
      if (transport_.alarm_raised_by() >= 0) return State::alarmed;
      if (look_around.passed()) return State::pending;
      rest_between_looks(looks);
    }
  }

  bool is_lost() override { return false; }

 private:
  MpiTransport& transport_;
  Direction direction_;
  std::vector<Request> requests_;
};

MpiTransport::MpiTransport(std::shared_ptr<MpiLibrary> library, Place place)
    : library_(std::move(library)), place_(std::move(place)) {
  library_->next_group = place_.group + 1;
  if (place_.group * channels + channels > library_->api().tag_max) {
    fail(ErrorCode::comm, "MPI: {} groups of ranks are more than this MPI has tags for",
         place_.group);
  }
  alarm_request_ = start(Direction::receive, -1, tag(alarm_channel),
                         reinterpret_cast<std::byte*>(&alarm_received_), sizeof(alarm_received_));
}

MpiTransport::~MpiTransport() {
  for (Request& alarm : alarms_sent_) release(alarm, Direction::send);
  release(alarm_request_, Direction::receive);
}

int MpiTransport::tag(int channel) const {
  return static_cast<int>(place_.group * channels + channel);
}

MpiTransport::Request MpiTransport::start(
    Direction direction, int peer, int tag, std::byte* memory, Bytes bytes) {
  const DstrainMpiApi& api = library_->api();
  const auto count = static_cast<std::int32_t>(bytes);
  const int other = peer < 0 ? peer : place_.members[static_cast<std::size_t>(peer)];
  Request request = nullptr;
  const std::lock_guard lock(library_->lock());
  if (direction == Direction::send) {
    library_->check(api.send(memory, count, other, tag, &request), "sending");
  } else {
    library_->check(api.receive(memory, count, other, tag, &request), "receiving");
  }
  return request;
}

Message MpiTransport::start_all(
    Direction direction, int peer, Channel channel, std::byte* memory, Bytes bytes) {
  auto message = std::make_unique<MpiMessage>(*this, direction);
  for (Bytes at = 0; at < bytes; at += place_.piece_bytes) {
    message->add(start(direction, peer, tag(static_cast<int>(channel)), memory + at,
                       std::min(place_.piece_bytes, bytes - at)));
  }
  return message;
}

Message MpiTransport::send(int peer, Channel channel, const void* from, Bytes bytes) {
  auto* const memory = static_cast<std::byte*>(const_cast<void*>(from));
  return start_all(Direction::send, peer, channel, memory, bytes);
}

Message MpiTransport::receive(int peer, Channel channel, void* to, Bytes bytes) {
  return start_all(Direction::receive, peer, channel, static_cast<std::byte*>(to), bytes);
}

bool MpiTransport::test(Request& request) {
  std::int32_t done = 0;
  const std::lock_guard lock(library_->lock());
  library_->check(library_->api().test(&request, &done), "moving bytes");
  return done != 0;
}

/// Not done means that a rank failed or leaves. A receive is taken back from MPI, so that nothing
/// is written into its memory later; what has begun to arrive may not be.
void MpiTransport::release(Request& request, Direction direction) noexcept {
  try {
    if (test(request)) return;
    const DstrainMpiApi& api = library_->api();
    if (direction == Direction::receive) {
      const std::lock_guard lock(library_->lock());
      api.cancel(&request);
    }
    const Deadline deadline = Deadline::after(release_seconds);
    for (int looks = 0; !deadline.passed(); ++looks) {
      if (test(request)) return;
      rest_between_looks(looks);
    }
    const std::lock_guard lock(library_->lock());
    api.forget(&request);
  } catch (const Error&) {  // MPI has lost it itself
  }
}

void MpiTransport::look_for_alarm() {
  if (alarm_request_ == nullptr || alarm_raised_by_ >= 0 || !test(alarm_request_)) return;
  int nobody = -1;
  alarm_raised_by_.compare_exchange_strong(nobody, alarm_received_);
}

void MpiTransport::raise_alarm() noexcept {
  int nobody = -1;
  if (!alarm_raised_by_.compare_exchange_strong(nobody, rank())) return;
  own_alarm_ = rank();
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    try {
      alarms_sent_.push_back(start(Direction::send, peer, tag(alarm_channel),
                                   reinterpret_cast<std::byte*>(&own_alarm_), sizeof(own_alarm_)));
    } catch (const std::exception&) {  // that peer cannot be reached
    }
  }
}

std::unique_ptr<Transport> MpiTransport::split(const Subgroup& subgroup) {
  Place place{{}, subgroup.rank, subgroup.group, place_.piece_bytes};
  for (const int member : subgroup.members) {
    place.members.push_back(place_.members[static_cast<std::size_t>(member)]);
  }
  return std::make_unique<MpiTransport>(library_, std::move(place));
}

std::unique_ptr<Transport> make_mpi_transport(std::shared_ptr<MpiLibrary> library,
                                              Store& store,
                                              const MpiOptions& options) {
  if (library->api().size < options.size) {
    fail(ErrorCode::config,
         "MPI_COMM_WORLD has {} ranks, the job {}: start all ranks with one mpirun, or set "
         "DSTRAIN_COMM=tcp (under srun, Debian's OpenMPI needs --mpi=pmix)",
         library->api().size, options.size);
  }
  const auto key = [&](const char* what, int rank) {
    return fmt::format("mpi/{}/{}/{}", options.name, what, rank);
  };
  const auto number = [&](const char* what, int rank) {
    const std::string text = store.get(key(what, rank), options.timeout_seconds);
    std::int64_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  store.set(key("place", options.rank), std::to_string(library->api().rank));
  store.set(key("group", options.rank), std::to_string(library->next_group));
  MpiTransport::Place place{{}, options.rank, 0, options.piece_bytes};
  for (int rank = 0; rank < options.size; ++rank) {
    place.members.push_back(static_cast<int>(number("place", rank)));
    place.group = std::max(place.group, number("group", rank));
  }
  return std::make_unique<MpiTransport>(std::move(library), std::move(place));
}

std::unique_ptr<Communicator> make_mpi_communicator(std::shared_ptr<MpiLibrary> library,
                                                    Store& store,
                                                    const MpiOptions& options) {
  return std::make_unique<MessageCommunicator>(
      make_mpi_transport(std::move(library), store, options), options.timeout_seconds);
}

}  // namespace dstrain::comm
