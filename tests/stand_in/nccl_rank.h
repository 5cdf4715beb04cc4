#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <nccl.h>

#include "tests/stand_in/nccl_segment.h"

namespace dstrain::stand_in {

/// One end of a message, in pieces.
struct Message {
  enum class Way : std::uint8_t { send, receive };
  Way way;
  int peer;
  std::byte* data;
  std::size_t bytes;
  std::size_t done = 0;
};

/// A rank of a communicator. Its operations block until the other ranks do theirs, for ever where
/// these do not come, as a GPU does in NCCL; abort() ends that. They run one at a time.
class NcclRank {
 public:
  NcclRank(Segment& segment, int rank, int size) : shared_(segment), rank_(rank), size_(size) {}
  [[nodiscard]] int size() const { return size_; }
  void abort() { aborted_ = true; }
  void barrier();
  void all_gather(const std::byte* from, std::byte* to, std::size_t bytes);
  /// A part of so many bytes for each rank. Adds two values at a time, in an order of the ranks
  /// that is the same on all of them and another for each part.
  void reduce_scatter(const std::byte* from, std::byte* to, std::size_t bytes, ncclDataType_t type);
  void broadcast(const std::byte* from, std::byte* to, std::size_t bytes, int root);
  /// All at once, as a group of NCCL's.
  void exchange(std::vector<Message> messages);

 private:
  template <class Condition>
  void wait_until(const Condition& condition);
  void tell();
  bool advance(Message& message);
  [[nodiscard]] std::byte* slot(int rank) const {
    return shared_.slots[static_cast<std::size_t>(rank)].data();
  }

  Segment& shared_;
  int rank_;
  int size_;
  std::uint64_t barriers_ = 0;
  std::atomic<bool> aborted_{false};
};

}  // namespace dstrain::stand_in
