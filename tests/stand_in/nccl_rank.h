#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <nccl.h>

#include "tests/stand_in/nccl_segment.h"

namespace dstrain::stand_in {

/// One end of a message, which is transferred in pieces.
struct Message {
  enum class Way : std::uint8_t { send, receive };
  Way way;
  int peer;
  std::byte* data;
  std::size_t bytes;
  std::size_t done = 0;
};

/// A rank of a communicator. Its operations block until the other ranks call theirs, like NCCL's on
/// a GPU: forever if these never do, unless abort() ends them. They run one at a time.
class NcclRank {
 public:
  NcclRank(Segment& segment, int rank, int size) : shared_(segment), rank_(rank), size_(size) {}
  [[nodiscard]] int size() const { return size_; }
  void abort() { aborted_ = true; }
  void barrier();
  void all_gather(const std::byte* from, std::byte* to, std::size_t bytes);
  /// `bytes` is the size of one rank's part. Adds two values at a time, in an order of ranks that
  /// is the same on all ranks but differs between parts.
  void reduce_scatter(const std::byte* from, std::byte* to, std::size_t bytes, ncclDataType_t type);
  void broadcast(const std::byte* from, std::byte* to, std::size_t bytes, int root);
  /// Exchanges all messages at once, like an NCCL group.
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
