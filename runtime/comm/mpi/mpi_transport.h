#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/mpi/mpi_communicator.h"
#include "runtime/comm/mpi/mpi_library.h"

namespace dstrain::comm {

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
  int heard_ = -1;
  Request ear_ = nullptr;
  int own_alarm_ = 0;
  std::vector<Request> alarms_sent_;
};

}  // namespace dstrain::comm
