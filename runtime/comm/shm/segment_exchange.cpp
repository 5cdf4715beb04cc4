#include "runtime/comm/shm/segment_exchange.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/base/error.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/socket.h"
#include "runtime/comm/meeting.h"

namespace dstrain::comm {
namespace {

/// How long one peer may take over its request; the others wait in the listen queue meanwhile.
constexpr double request_seconds = 2;

/// What a peer sends.
struct Request {
  Digest secret{};
  std::int32_t rank = 0;
};
static_assert(sizeof(Request) == 36);

template <class T>
std::span<std::uint8_t> bytes_of(T& value) {
  return {reinterpret_cast<std::uint8_t*>(&value), sizeof(T)};
}

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

UniqueFd unix_socket(int flags) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!socket) fail_errno(errno, "a unix socket");
  return socket;
}

bool is_own_user(int socket) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 &&
         peer.uid == ::geteuid();
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

UniqueFd receive_file(int socket) {
  std::uint8_t payload = 0;
  iovec part{&payload, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return {};
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS ||
      header->cmsg_len != CMSG_LEN(sizeof(int))) {
    return {};
  }
  int file = -1;
  std::memcpy(&file, CMSG_DATA(header), sizeof(int));
  return UniqueFd(file);
}

/// The rank that asks over `socket`; nothing when it has no right to.
std::optional<std::int32_t> asking_rank(int socket, const Digest& secret) {
  Request request;
  if (!is_own_user(socket) ||
      receive_all(socket, bytes_of(request), Deadline::after(request_seconds)) != Transfer::done ||
      !equal_in_constant_time(request.secret, secret)) {
    return std::nullopt;
  }
  return request.rank;
}

}  // namespace

SegmentOffer::SegmentOffer()
    : ticket_{random_bytes<16>(), random_bytes<32>()}, listener_(unix_socket(SOCK_NONBLOCK)) {
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
    pollfd entry{listener_.get(), POLLIN, 0};
    if (::poll(&entry, 1, deadline.remaining_ms()) == 0 && deadline.passed()) {
      fail(ErrorCode::timeout, "handing out shared memory timed out: waiting for {}",
           name_ranks(missing));
    }
    const UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!peer) continue;
    const std::optional<std::int32_t> rank = asking_rank(peer.get(), ticket_.secret);
    if (rank && send_file(peer.get(), file)) std::erase(missing, *rank);
  }
}

UniqueFd fetch_segment(const SegmentTicket& ticket, int rank, Deadline deadline) {
  const UniqueFd socket = unix_socket(0);
  const Address address = abstract_address(ticket);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.name), address.length) !=
          0 ||
      !is_own_user(socket.get())) {
    fail(ErrorCode::comm,
         "rank {} cannot reach rank 0's shared memory: are both on one machine, "
         "in one network namespace and of one user?",
         rank);
  }
  Request request{ticket.secret, rank};
  UniqueFd file;
  if (send_all(socket.get(), bytes_of(request), deadline) == Transfer::done) {
    pollfd entry{socket.get(), POLLIN, 0};
    if (::poll(&entry, 1, deadline.remaining_ms()) == 0) {
      fail(ErrorCode::timeout, "rank {} waited in vain for rank 0's shared memory", rank);
    }
    file = receive_file(socket.get());
  }
  if (!file) fail(ErrorCode::comm, "rank 0 refused its shared memory to rank {}", rank);
  return file;
}

}  // namespace dstrain::comm
