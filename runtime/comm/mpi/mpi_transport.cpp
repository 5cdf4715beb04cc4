#include "runtime/comm/mpi/mpi_transport.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "runtime/base/error.h"
#include "runtime/comm/mpi/mpi_library.h"

namespace dstrain::comm {
namespace {

using State = PendingMessage::State;

/// How long the release of a cancelled receive may take.
constexpr double release_seconds = 0.5;

}  // namespace

/// Messages over MPI. Waits poll, because only calls make MPI progress: a waiting rank yields its
/// core and then sleeps for some microseconds at a time.
class MpiTransport final : public Transport {
 public:
  struct Group {
    std::vector<int> members;  ///< ranks in MPI_COMM_WORLD, in the order of this group
    int rank = 0;
    std::int64_t group = 0;  ///< decides the tags
    Bytes piece_bytes = gibibyte;
  };
  MpiTransport(std::shared_ptr<MpiLibrary> library, Group group);

  [[nodiscard]] int rank() const override { return group_.rank; }
  [[nodiscard]] int size() const override { return static_cast<int>(group_.members.size()); }
  void connect(const std::vector<int>& /*peers*/) override {}
  void connect_pair(int /*peer*/, FunctionRef<void()> /*look*/) override {}
  Message send(int peer, const void* from, Bytes bytes) override;
  Message receive(int peer, void* to, Bytes bytes) override;
  [[nodiscard]] std::string reason() const override { return reason_; }
  [[nodiscard]] std::int64_t next_group() const override { return library_->next_group; }
  std::unique_ptr<Transport> split(const Subgroup& subgroup) override;

 private:
  enum class Direction { send, receive };
  using Request = void*;
  class MpiMessage;

  Request start(Direction direction, int peer, std::byte* memory, Bytes bytes);
  Message start_all(Direction direction, int peer, std::byte* memory, Bytes bytes);
  bool test(Request& request);
  void release(Request& request, Direction direction) noexcept;

  std::shared_ptr<MpiLibrary> library_;  // shared by all groups of the process
  Group group_;
  std::string reason_;
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
    for (int looks = 0;; ++looks) {
      try {
        while (!requests_.empty() && transport_.test(requests_.back())) requests_.pop_back();
        if (requests_.empty()) return State::done;
      } catch (const Error& error) {
        transport_.reason_ = error.what();
        return State::lost;
      }
      if (deadline.passed()) return State::pending;
      rest_between_looks(looks);
    }
  }

 private:
  MpiTransport& transport_;
  Direction direction_;
  std::vector<Request> requests_;
};

MpiTransport::MpiTransport(std::shared_ptr<MpiLibrary> library, Group group)
    : library_(std::move(library)), group_(std::move(group)) {
  library_->next_group = group_.group + 1;
  if (group_.group > library_->api().tag_max) {
    fail(ErrorCode::comm, "MPI: {} groups of ranks are more than this MPI has tags for",
         group_.group);
  }
}

MpiTransport::Request MpiTransport::start(Direction direction,
                                          int peer,
                                          std::byte* memory,
                                          Bytes bytes) {
  const DstrainMpiApi& api = library_->api();
  const auto count = static_cast<std::int32_t>(bytes);
  const int other = group_.members[static_cast<std::size_t>(peer)];
  const auto tag = static_cast<std::int32_t>(group_.group);
  Request request = nullptr;
  const std::lock_guard lock(library_->lock());
  if (direction == Direction::send) {
    library_->check(api.send(memory, count, other, tag, &request), "sending");
  } else {
    library_->check(api.receive(memory, count, other, tag, &request), "receiving");
  }
  return request;
}

Message MpiTransport::start_all(Direction direction, int peer, std::byte* memory, Bytes bytes) {
  auto message = std::make_unique<MpiMessage>(*this, direction);
  for (Bytes at = 0; at < bytes; at += group_.piece_bytes) {
    message->add(start(direction, peer, memory + at, std::min(group_.piece_bytes, bytes - at)));
  }
  return message;
}

Message MpiTransport::send(int peer, const void* from, Bytes bytes) {
  auto* const memory = static_cast<std::byte*>(const_cast<void*>(from));
  return start_all(Direction::send, peer, memory, bytes);
}

Message MpiTransport::receive(int peer, void* to, Bytes bytes) {
  return start_all(Direction::receive, peer, static_cast<std::byte*>(to), bytes);
}

bool MpiTransport::test(Request& request) {
  std::int32_t done = 0;
  const std::lock_guard lock(library_->lock());
  library_->check(library_->api().test(&request, &done), "moving bytes");
  return done != 0;
}

/// A request that is not done means that a rank failed or leaves. Cancels a receive, so that MPI
/// does not write into its memory later; one that has begun to arrive may not be cancelled.
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

std::unique_ptr<Transport> MpiTransport::split(const Subgroup& subgroup) {
  Group group{{}, subgroup.rank, subgroup.group, group_.piece_bytes};
  for (const int member : subgroup.members) {
    group.members.push_back(group_.members[static_cast<std::size_t>(member)]);
  }
  return std::make_unique<MpiTransport>(library_, std::move(group));
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
  struct Own {
    std::int64_t mpi_rank;
    std::int64_t group;
  };
  Own own{library->api().rank, library->next_group};
  MpiTransport::Group group{{}, options.rank, 0, options.piece_bytes};
  for (const std::string& text :
       store.gather("mpi/" + options.name, {options.rank, options.size},
                    {reinterpret_cast<const char*>(&own), sizeof(own)}, options.timeout_seconds)) {
    DSTRAIN_CHECK(text.size() == sizeof(own), "{} bytes of a rank's number in MPI", text.size());
    std::memcpy(&own, text.data(), sizeof(own));
    group.members.push_back(static_cast<int>(own.mpi_rank));
    group.group = std::max(group.group, own.group);
  }
  return std::make_unique<MpiTransport>(std::move(library), std::move(group));
}

}  // namespace dstrain::comm
