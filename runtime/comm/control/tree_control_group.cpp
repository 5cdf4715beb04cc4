#include "runtime/comm/control/tree_control_group.h"

#include <array>
#include <cerrno>
#include <exception>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "runtime/base/socket.h"
#include "runtime/comm/group_barrier.h"
#include "runtime/comm/packed_texts.h"

namespace dstrain::comm {
namespace {

constexpr int value_line = 0;
constexpr int alarm_line = 1;

/// How often a rank that waits looks at what is no socket.
constexpr double hook_seconds = 0.05;
/// A rank that waits for so long says so in the store, where those that give up look.
constexpr double patience_seconds = 1;
/// Those who wait within a node give up first: they know which of its ranks is missing.
constexpr double tree_linger_seconds = 1;
/// How long the last word of a rank may take whose connection for values has ended.
constexpr double last_word_seconds = 0.5;
constexpr std::size_t word_bytes_max = 4096;

/// What crosses a connection for alarms, before so many bytes of text.
struct Word {
  enum Kind : std::uint32_t { left, failure };
  std::uint32_t kind = left;
  std::int32_t code = 0;  ///< an ErrorCode
  std::uint64_t bytes = 0;
};

template <class T>
std::span<std::uint8_t> memory_of(T& value) {
  return {reinterpret_cast<std::uint8_t*>(&value), sizeof(T)};
}

/// Goes into the empty buffer of a connection as one.
void send_word(int socket, Word word, std::string_view text) noexcept {
  text = text.substr(0, word_bytes_max);
  word.bytes = text.size();
  std::array<char, sizeof(Word) + word_bytes_max> bytes;
  std::memcpy(bytes.data(), &word, sizeof(word));
  std::memcpy(bytes.data() + sizeof(word), text.data(), text.size());
  ::send(socket, bytes.data(), sizeof(word) + text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

std::vector<int> neighbours_of(int rank, int size) {
  std::vector<int> neighbours;
  if (rank > 0) neighbours.push_back((rank - 1) / 2);
  for (const int child : {2 * rank + 1, 2 * rank + 2}) {
    if (child < size) neighbours.push_back(child);
  }
  return neighbours;
}

}  // namespace

/// What one rank passes to the next, the header first: the values of a part of the tree, or of all
/// ranks.
struct TreeControlGroup::Frame {
  struct Header {
    Call what;
    std::int64_t operation = 0;
    std::uint64_t bytes = 0;
  };
  Header header;
  std::string packed;
};

TreeControlGroup::TreeControlGroup(Store& store, Options options)
    : ControlGroup({options.tcp.rank, options.tcp.size}),
      store_(store),
      options_(std::move(options)),
      wake_(::eventfd(0, EFD_CLOEXEC)) {
  if (!wake_) fail_errno(errno, "eventfd");
  const std::vector<int> ranks = neighbours_of(rank(), size());
  TcpMesh mesh = connect_mesh(store_, options_.tcp, {ranks, 2});
  for (const int rank : ranks) {
    std::vector<UniqueFd>& lines = mesh[static_cast<std::size_t>(rank)];
    neighbours_.push_back({rank, std::move(lines[value_line]), std::move(lines[alarm_line])});
  }
}

TreeControlGroup::~TreeControlGroup() {
  // A rank that fails does not say that it leaves: it is named as the one that is gone.
  if (failed_ || std::uncaught_exceptions() > 0) return;
  for (const Neighbour& to : neighbours_) send_word(to.alarm.get(), {}, {});
}

std::vector<std::string> TreeControlGroup::exchange(const Call& call, std::string_view own) {
  current_ = call;
  ++operations_;
  check_not_failed();
  Frame frame{{call, operations_, 0}, {}};
  pack_text(frame.packed, rank(), own);
  const std::span<Neighbour> all(neighbours_);
  const std::span<Neighbour> children = all.subspan(rank() == 0 ? 0 : 1);
  for (Neighbour& child : children) frame.packed += receive(child).packed;
  if (rank() != 0) {
    send(all.front(), frame);
    frame = receive(all.front());
  }
  for (Neighbour& child : children) send(child, frame);
  return unpack_texts(frame.packed, size());
}

TreeControlGroup::Frame TreeControlGroup::receive(Neighbour& from) {
  Frame frame;
  receive_bytes(from, memory_of(frame.header));
  check_same(frame, from);
  frame.packed.resize(frame.header.bytes);
  receive_bytes(from, {reinterpret_cast<std::uint8_t*>(frame.packed.data()), frame.packed.size()});
  return frame;
}

void TreeControlGroup::receive_bytes(Neighbour& from, std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(from.values.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      wait_for(from, POLLIN);
    } else {
      fail_lost(from);
    }
  }
}

void TreeControlGroup::send(Neighbour& to, const Frame& frame) {
  Frame::Header header = frame.header;
  header.bytes = frame.packed.size();
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes += frame.packed;
  for (std::string_view left = bytes; !left.empty();) {
    const ssize_t sent =
        ::send(to.values.get(), left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      left.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EINTR) {
      wait_for(to, POLLOUT);
    } else {
      fail_lost(to);
    }
  }
}

/// Until the connection for values can be read or written. A value that is there comes before what
/// has become of its sender since.
void TreeControlGroup::wait_for(Neighbour& peer, short events) {
  const Deadline deadline = Deadline::after(options_.tcp.timeout_seconds + tree_linger_seconds);
  const Deadline patience = Deadline::after(patience_seconds);
  while (true) {
    check_not_failed();
    std::vector<pollfd> polls{{peer.values.get(), events, 0}, {wake_.get(), POLLIN, 0}};
    for (const Neighbour& neighbour : neighbours_) {
      polls.push_back({neighbour.left ? -1 : neighbour.alarm.get(), POLLIN, 0});
    }
    const Deadline look = deadline.at_most(options_.look ? hook_seconds : patience_seconds);
    ::poll(polls.data(), polls.size(), look.remaining_ms());
    if (polls[0].revents != 0) return;
    for (std::size_t i = 0; i < neighbours_.size(); ++i) {
      if (polls[2 + i].revents != 0) hear(neighbours_[i]);
    }
    if (options_.look) options_.look();
    if (patience.passed()) say_that_this_rank_waits();
    if (deadline.passed()) {
      fail_with(ErrorCode::timeout,
                fmt::format("{} timed out after {:g} s: waiting for {}", doing(),
                            options_.tcp.timeout_seconds, name_ranks(missing_ranks(peer.rank))));
    }
  }
}

/// Takes what a neighbour says of itself, or of what it has heard.
void TreeControlGroup::hear(Neighbour& from) {
  Word word;
  const Deadline deadline = Deadline::after(last_word_seconds);
  if (receive_all(from.alarm.get(), memory_of(word), deadline) != Transfer::done ||
      word.bytes > word_bytes_max) {
    fail_with(ErrorCode::comm, fmt::format("{}: rank {} is gone", doing(), name_of(from.rank)));
  }
  if (word.kind == Word::left) {
    from.left = true;
    return;
  }
  std::string text(word.bytes, '\0');
  receive_all(from.alarm.get(), {reinterpret_cast<std::uint8_t*>(text.data()), text.size()},
              deadline);
  spread(static_cast<ErrorCode>(word.code), text);
  check_not_failed();
}

/// Its connection for values has ended. It may have said why.
void TreeControlGroup::fail_lost(Neighbour& peer) {
  if (!peer.left) hear(peer);
  fail_with(ErrorCode::comm,
            fmt::format("{}: rank {} has left the group", doing(), name_of(peer.rank)));
}

void TreeControlGroup::check_same(const Frame& frame, const Neighbour& from) {
  if (frame.header.what == current_ && frame.header.operation == operations_) return;
  fail_with(ErrorCode::comm,
            fmt::format("the ranks disagree in control operation {}: rank {} does {}, rank {} "
                        "does {}",
                        operations_, name_of(rank()), to_string(current_), name_of(from.rank),
                        to_string(frame.header.what)));
}

void TreeControlGroup::check_not_failed() const {
  const std::lock_guard lock(mutex_);
  if (!failed_) return;
  throw Error(failure_, failure_ == ErrorCode::aborted ? doing() + ": " + why_ : why_);
}

void TreeControlGroup::fail_with(ErrorCode code, const std::string& message) {
  spread(code, message);
  throw Error(code, message);
}

void TreeControlGroup::spread(ErrorCode code, const std::string& message) noexcept {
  const std::lock_guard lock(mutex_);
  if (std::exchange(failed_, true)) return;
  failure_ = code;
  why_ = message;
  ::eventfd_write(wake_.get(), 1);
  for (const Neighbour& to : neighbours_) {
    send_word(to.alarm.get(), {Word::failure, static_cast<std::int32_t>(code)}, message);
  }
}

void TreeControlGroup::abort() noexcept {
  spread(ErrorCode::aborted, "aborted by rank " + std::to_string(name_of(rank())));
}

std::string TreeControlGroup::key_of(int rank) const {
  return fmt::format("waits/{}/{}", options_.tcp.name, rank);
}

/// A rank in the middle of the tree that does not come hides those behind it: who has come is in
/// the store.
void TreeControlGroup::say_that_this_rank_waits() {
  if (told_ == operations_) return;
  try {
    store_.add(key_of(rank()), operations_ - told_);
    told_ = operations_;
  } catch (const Error&) {  // rank 0 is gone, which its connections tell
  }
}

/// At least `one`, which this rank waits for.
std::vector<int> TreeControlGroup::missing_ranks(int one) {
  std::vector<int> missing;
  try {
    for (int other = 0; other < size(); ++other) {
      const bool waits = other == rank() || store_.add(key_of(other), 0) >= operations_;
      if (!waits) missing.push_back(name_of(other));
    }
  } catch (const Error&) {
    missing.clear();
  }
  return missing.empty() ? std::vector<int>{name_of(one)} : missing;
}

int TreeControlGroup::name_of(int rank) const {
  return options_.names.empty() ? rank : options_.names[static_cast<std::size_t>(rank)];
}

std::string TreeControlGroup::doing() const {
  return fmt::format("{} (control operation {}) on rank {}", to_string(current_), operations_,
                     name_of(rank()));
}

}  // namespace dstrain::comm
