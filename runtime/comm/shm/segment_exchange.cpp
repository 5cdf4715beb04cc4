#include "runtime/comm/shm/segment_exchange.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/base/error.h"
#include "runtime/comm/group_barrier.h"
#include "runtime/os/random_bytes.h"
#include "runtime/os/socket.h"

namespace dstrain::comm {
namespace {

/// How long the request of one peer may take; the others wait in the listen queue meanwhile.
constexpr double request_seconds = 2;

/// The message of a peer.
struct Request {
  Digest secret{};
  std::int32_t rank = 0;
};
static_assert(sizeof(Request) == 36);

struct Address {
  sockaddr_un name{};
  socklen_t length = 0;
};

Address abstract_address(const SegmentTicket& ticket) {
  const std::string text = "dstrain-" + to_hex(ticket.name);
  Address address;
  address.name.sun_family = AF_UNIX;  // sun_path[0] stays 0: the abstract namespace
  std::copy(text.begin(), text.end(), address.name.sun_path + 1);
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

UniqueFd unix_socket() {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) fail_errno(errno, "a unix socket");
  return socket;
}

void set_blocking(int socket, bool blocking) {
  const int flags = ::fcntl(socket, F_GETFL);
  if (::fcntl(socket, F_SETFL, blocking ? flags & ~O_NONBLOCK : flags | O_NONBLOCK) != 0) {
    fail_errno(errno, "a unix socket");
  }
}

/// Limits how long a blocking connect or send may take; 0 would mean forever.
void limit_sending(int socket, double seconds) {
  constexpr double seconds_min = 1e-3;
  const double limited = std::max(seconds, seconds_min);
  timeval limit{};
  limit.tv_sec = static_cast<time_t>(limited);
  limit.tv_usec = static_cast<suseconds_t>((limited - std::floor(limited)) * 1e6);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

bool send_file(int socket, int file) {
  std::uint8_t payload = 1;
  iovec part{&payload, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &file, sizeof(int));
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

[[noreturn]] void fail_waiting(int rank) {
  fail(ErrorCode::timeout, "rank {} timed out waiting for rank 0's shared memory", rank);
}

/// Waits for a message of one byte.
Transfer receive_message(int socket, msghdr& message, Deadline& deadline) {
  ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    if (!wait_until_ready(socket, POLLIN, deadline)) return Transfer::timed_out;
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  }
  return got == 1 ? Transfer::done : Transfer::closed;
}

/// Receives the file that rank 0 sends to `rank`.
UniqueFd receive_file(int socket, int rank, Deadline deadline) {
  std::uint8_t payload = 0;
  iovec part{&payload, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const Transfer outcome = receive_message(socket, message, deadline);
  if (outcome == Transfer::timed_out) fail_waiting(rank);
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (outcome != Transfer::done || header == nullptr || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int))) {
    fail(ErrorCode::comm, "rank 0 refused its shared memory to rank {}", rank);
  }
  int file = -1;
  std::memcpy(&file, CMSG_DATA(header), sizeof(int));
  return UniqueFd(file);
}

/// Returns the rank that asks over `socket`; nothing if it has no right to.
std::optional<std::int32_t> asking_rank(int socket, const Digest& secret, Deadline deadline) {
  Request request;
  if (peer_user(socket) != ::geteuid() ||
      receive_all(socket, bytes_of(request), deadline) != Transfer::done ||
      !equal_in_constant_time(request.secret, secret)) {
    return std::nullopt;
  }
  return request.rank;
}

/// Accepts the next peer; none if it has disconnected.
UniqueFd accept_peer(int listener) {
  UniqueFd peer(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!peer && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
    fail_errno(errno, "handing out shared memory: accepting a rank");
  }
  return peer;
}

/// Returns 0, or an errno if there is no connection. The system waits while the listen queue is
/// full.
int connect_socket(int socket, const Address& address, Deadline deadline) {
  set_blocking(socket, true);
  int error = EINTR;
  while (error == EINTR && !deadline.passed()) {
    limit_sending(socket, deadline.remaining_seconds());
    const auto* const name = reinterpret_cast<const sockaddr*>(&address.name);
    error = ::connect(socket, name, address.length) == 0 ? 0 : errno;
  }
  set_blocking(socket, false);
  return error == EAGAIN || error == EINTR ? ETIMEDOUT : error;
}

UniqueFd connect_to_offer(const SegmentTicket& ticket, int rank, Deadline deadline) {
  UniqueFd socket = unix_socket();
  const int error = connect_socket(socket.get(), abstract_address(ticket), deadline);
  if (error == ETIMEDOUT) fail_waiting(rank);
  if (error != 0) {
    fail(ErrorCode::comm,
         "rank {} cannot reach rank 0's shared memory: {}: rank 0 has ended, or the two are not on "
         "one machine and in one network namespace",
         rank, std::generic_category().message(error));
  }
  if (peer_user(socket.get()) != ::geteuid()) {
    fail(ErrorCode::comm,
         "rank {} and rank 0 run as different users and cannot share memory: start all ranks as "
         "one user",
         rank);
  }
  return socket;
}

}  // namespace

SegmentOffer::SegmentOffer()
    : ticket_{random_bytes<16>(), random_bytes<32>()}, listener_(unix_socket()) {
  const Address address = abstract_address(ticket_);
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address.name), address.length) !=
          0 ||
      ::listen(listener_.get(), SOMAXCONN) != 0) {
    fail_errno(errno, "listening at an abstract unix socket");
  }
}

void SegmentOffer::serve(int file, int size, Deadline deadline) {
  std::vector<int> missing(static_cast<std::size_t>(size - 1));
  std::iota(missing.begin(), missing.end(), 1);
  while (!missing.empty()) {
    // Checked in every turn: peers that come and go must not postpone the timeout.
    if (deadline.passed()) {
      fail(ErrorCode::timeout, "handing out shared memory timed out: waiting for {}",
           name_ranks(missing));
    }
    if (!wait_until_ready(listener_.get(), POLLIN, deadline)) continue;
    const UniqueFd peer = accept_peer(listener_.get());
    if (!peer) continue;
    const std::optional<std::int32_t> rank =
        asking_rank(peer.get(), ticket_.secret, deadline.at_most(request_seconds));
    if (rank && send_file(peer.get(), file)) std::erase(missing, *rank);
  }
}

UniqueFd fetch_segment(const SegmentTicket& ticket, int rank, Deadline deadline) {
  const UniqueFd socket = connect_to_offer(ticket, rank, deadline);
  const Request request{ticket.secret, rank};
  const Transfer sent = send_all(socket.get(), bytes_of(request), deadline);
  if (sent == Transfer::timed_out) fail_waiting(rank);
  return receive_file(socket.get(), rank, deadline);  // throws if rank 0 has closed
}

std::shared_ptr<const Segment> share_segment(SegmentOffer& offer,
                                             const SegmentTicket& ticket,
                                             SegmentMember member,
                                             Bytes heap_bytes,
                                             Deadline deadline) {
  Segment segment =
      member.rank == 0 ? Segment::create(member.size, heap_bytes)
                       : Segment::attach(fetch_segment(ticket, member.rank, deadline), member.size);
  if (member.rank == 0) offer.serve(segment.file(), member.size, deadline);
  segment.close_file();
  return std::make_shared<const Segment>(std::move(segment));
}

std::shared_ptr<const Segment> split_segment(
    const SplitPlan& plan,
    FunctionRef<std::vector<SegmentTicket>(const SegmentTicket&)> gather,
    Bytes heap_bytes,
    double timeout_seconds) {
  SegmentOffer offer;
  const std::vector<SegmentTicket> tickets = gather(offer.ticket());
  return share_segment(offer, tickets[static_cast<std::size_t>(plan.members.front())],
                       {plan.rank, static_cast<int>(plan.members.size())}, heap_bytes,
                       Deadline::after(timeout_seconds));
}

std::shared_ptr<const Segment> join_segment(Store& store,
                                            const std::string& name,
                                            SegmentMember member,
                                            Bytes heap_bytes,
                                            double timeout_seconds) {
  const std::string key = "shm/" + name;
  SegmentOffer offer;
  SegmentTicket ticket = offer.ticket();
  if (member.rank == 0) {
    store.set(key, {reinterpret_cast<const char*>(&ticket), sizeof(ticket)});
  } else {
    const std::string value = store.get(key, timeout_seconds);
    DSTRAIN_CHECK(value.size() == sizeof(ticket), "{} bytes at {}", value.size(), key);
    std::memcpy(&ticket, value.data(), sizeof(ticket));
  }
  return share_segment(offer, ticket, member, heap_bytes, Deadline::after(timeout_seconds));
}

}  // namespace dstrain::comm
