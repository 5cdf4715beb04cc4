#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/deadline.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/sha256.h"
#include "runtime/base/unique_handle.h"
#include "runtime/comm/shm/segment.h"
#include "runtime/comm/split_plan.h"
#include "runtime/comm/store.h"

namespace dstrain::comm {

/// The address where a segment is handed out and the secret that gives the right to it. Plain
/// bytes. The channel that carries it (the store guarded by the job's token, or a parent
/// communicator) decides which processes get it.
struct SegmentTicket {
  std::array<std::uint8_t, 16> name{};
  Digest secret{};
};

/// Passes the file of a segment to the other ranks of this node, over a unix socket by SCM_RIGHTS.
/// It does not use /proc/<pid>/fd: opening that needs the right to ptrace, which differs with
/// containers, capabilities and security modules; a passed descriptor always works. The socket has
/// a random name in the abstract namespace, so there is no file to create or remove. Serves only
/// processes of our user that know the ticket's secret.
class SegmentOffer {
 public:
  /// Listens. Throws Error{io}.
  SegmentOffer();
  [[nodiscard]] const SegmentTicket& ticket() const noexcept { return ticket_; }
  /// Gives `file` to ranks 1 to size-1. Throws Error{timeout} that names the ranks that did not
  /// come.
  void serve(int file, int size, Deadline deadline);

 private:
  SegmentTicket ticket_;
  UniqueFd listener_;
};

/// Fetches the file that rank 0 offers. Throws Error{comm} or Error{timeout}.
UniqueFd fetch_segment(const SegmentTicket& ticket, int rank, Deadline deadline);

struct SegmentMember {
  int rank = 0;
  int size = 1;
};

/// Rank 0 creates a segment with a heap of `heap_bytes` for each rank and hands it out by `offer`;
/// the others fetch it with the ticket of that offer. Every rank calls it.
std::shared_ptr<const Segment> share_segment(SegmentOffer& offer,
                                             const SegmentTicket& ticket,
                                             SegmentMember member,
                                             Bytes heap_bytes,
                                             Deadline deadline);

/// Does the same for the ranks of one subgroup; all ranks of the group call it. `gather` returns
/// the ticket of every rank of the group, given this rank's.
std::shared_ptr<const Segment> split_segment(
    const SplitPlan& plan,
    FunctionRef<std::vector<SegmentTicket>(const SegmentTicket&)> gather,
    Bytes heap_bytes,
    double timeout_seconds);

/// Does the same for ranks that share a store, in which `name` separates groups. The store is not
/// used afterwards.
std::shared_ptr<const Segment> join_segment(Store& store,
                                            const std::string& name,
                                            SegmentMember member,
                                            Bytes heap_bytes,
                                            double timeout_seconds);

}  // namespace dstrain::comm
