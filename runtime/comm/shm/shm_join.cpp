#include <cstring>

#include "runtime/base/error.h"
#include "runtime/comm/gather_values.h"
#include "runtime/comm/shm/segment_exchange.h"
#include "runtime/comm/shm/shm_communicator.h"
#include "runtime/comm/split_plan.h"

/// How ranks come to share a segment: at the start through a store, later through their parent.
namespace dstrain::comm {
namespace {

struct Member {
  int rank = 0;
  int size = 1;
};

/// Rank 0 hands out the memory that it made, the others fetch it.
Segment share(Segment made, SegmentOffer& offer, Member member, Deadline deadline) {
  offer.serve(made.file(), member.size, deadline);
  made.close_file();
  return made;
}

Segment fetch(const SegmentTicket& ticket, Member member, Deadline deadline) {
  Segment segment = Segment::attach(fetch_segment(ticket, member.rank, deadline), member.size);
  segment.close_file();
  return segment;
}

}  // namespace

std::unique_ptr<Communicator> make_shm_communicator(Store& store, const ShmOptions& options) {
  const Deadline deadline = Deadline::after(options.timeout_seconds);
  const Member member{options.rank, options.size};
  const Meeting::Options meeting{options.rank, options.timeout_seconds};
  const std::string key = "shm/" + options.name;
  SegmentTicket ticket;
  if (options.rank == 0) {
    SegmentOffer offer;
    Segment segment = Segment::create(options.size, default_heap_bytes(options.size));
    ticket = offer.ticket();
    store.set(key, {reinterpret_cast<const char*>(&ticket), sizeof(ticket)});
    return std::make_unique<ShmCommunicator>(share(std::move(segment), offer, member, deadline),
                                             meeting);
  }
  const std::string value = store.get(key, options.timeout_seconds);
  DSTRAIN_CHECK(value.size() == sizeof(ticket), "{} bytes at {}", value.size(), key);
  std::memcpy(&ticket, value.data(), sizeof(ticket));
  return std::make_unique<ShmCommunicator>(fetch(ticket, member, deadline), meeting);
}

std::unique_ptr<Communicator> ShmCommunicator::split(Split split) {
  const Deadline deadline = Deadline::after(options_.timeout_seconds);
  Stream stream(Stream::Mode::inline_on_caller);
  const std::vector<Split> splits = gather_values(split, *this, stream);
  const SplitPlan plan = plan_split(splits, rank());
  const Member member{plan.rank, static_cast<int>(plan.members.size())};
  const Meeting::Options meeting{plan.rank, options_.timeout_seconds};
  SegmentOffer offer;
  const std::vector<SegmentTicket> tickets = gather_values(offer.ticket(), *this, stream);
  const auto first = static_cast<std::size_t>(plan.members.front());
  return std::make_unique<ShmCommunicator>(
      plan.rank == 0 ? share(Segment::create(member.size, default_heap_bytes(member.size)), offer,
                             member, deadline)
                     : fetch(tickets[first], member, deadline),
      meeting);
}

}  // namespace dstrain::comm
