#include "runtime/comm/control/tree_control_group.h"

#include <array>
#include <cerrno>
#include <exception>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "runtime/comm/group_barrier.h"
#include "runtime/comm/packed_texts.h"
#include "runtime/comm/split_plan.h"
#include "runtime/os/socket.h"

namespace dstrain::comm {
namespace {

constexpr int value_line = 0;
constexpr int alarm_line = 1;

/// How often a waiting rank polls sources other than sockets.
constexpr double tree_look_seconds = 0.05;
/// How long to wait for the last message of a rank whose data connection has ended.
constexpr double last_word_seconds = 0.5;
constexpr std::size_t word_bytes_max = 4096;

/// The header of a message on an alarm connection, before its bytes of text.
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

/// Sends one message, which fits into the empty buffer of a connection.
void send_word(int socket, Word word, std::string_view text) noexcept {
  text = text.substr(0, word_bytes_max);
  word.bytes = text.size();
  std::array<char, sizeof(Word) + word_bytes_max> bytes;
  std::memcpy(bytes.data(), &word, sizeof(word));
  text.copy(bytes.data() + sizeof(word), text.size());
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

/// The message that one rank passes to the next, the header first: the values of a part of the
/// tree, or of all ranks.
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
  if (options_.waits == nullptr) {
    own_waits_ =
        std::make_unique<StoredWaits>(store_, options_.tcp.name, Store::Member{rank(), size()});
    options_.waits = own_waits_.get();
  }
  const std::vector<int> ranks = neighbours_of(rank(), size());
  TcpMesh mesh = connect_mesh(store_, options_.tcp, {ranks, 2});
  for (const int rank : ranks) {
    std::vector<UniqueFd>& lines = mesh[static_cast<std::size_t>(rank)];
    neighbours_.push_back({rank, std::move(lines[value_line]), std::move(lines[alarm_line])});
  }
}

TreeControlGroup::~TreeControlGroup() {
  // A rank that fails does not announce that it leaves, so that it is named as the one that is
  // gone.
  if (known() || std::uncaught_exceptions() > 0) return;
  for (const Neighbour& to : neighbours_) send_word(to.alarm.get(), {}, {});
}

void TreeControlGroup::begin(const Call& call) {
  current_ = call;
  ++operations_;
  if (own_waits_) own_waits_->begin();
  check_not_failed();
}

std::span<TreeControlGroup::Neighbour> TreeControlGroup::children() {
  return std::span(neighbours_).subspan(rank() == 0 ? 0 : 1);
}

/// With two ranks, each sends to the other at once.
void TreeControlGroup::agree(const Call& call) {
  begin(call);
  const Frame own{{call, operations_, 0}, {}};
  if (size() == 2) {
    send(neighbours_.front(), own);
    receive(neighbours_.front());
    return;
  }
  for (Neighbour& child : children()) receive(child);
  if (rank() != 0) {
    send(neighbours_.front(), own);
    receive(neighbours_.front());
  }
  for (Neighbour& child : children()) send(child, own);
}

std::vector<std::string> TreeControlGroup::exchange(const Call& call, std::string_view own) {
  begin(call);
  Frame frame{{call, operations_, 0}, {}};
  pack_text(frame.packed, rank(), own);
  for (Neighbour& child : children()) frame.packed += receive(child).packed;
  if (rank() != 0) {
    send(neighbours_.front(), frame);
    frame = receive(neighbours_.front());
  }
  for (Neighbour& child : children()) send(child, frame);
  return unpack_texts(frame.packed, size());
}

std::unique_ptr<ControlGroup> TreeControlGroup::split(Communicator::Split split) {
  const SplitPlan plan = plan_split(gather(split), rank());
  Options options{.tcp = options_.tcp};
  options.tcp.rank = plan.rank;
  options.tcp.size = static_cast<int>(plan.members.size());
  options.tcp.name += fmt::format("/{}.{}", splits_++, plan.members.front());
  return std::make_unique<TreeControlGroup>(store_, std::move(options));
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

/// Waits until the data connection can be read or written. A value that has arrived takes
/// precedence over a later failure of its sender.
void TreeControlGroup::wait_for(Neighbour& peer, short events) {
  Deadline deadline = Deadline::after(options_.tcp.timeout_seconds);
  while (true) {
    check_not_failed();
    std::vector<pollfd> polls{{peer.values.get(), events, 0}, {wake_.get(), POLLIN, 0}};
    for (const Neighbour& neighbour : neighbours_) {
      polls.push_back({neighbour.left ? -1 : neighbour.alarm.get(), POLLIN, 0});
    }
    ::poll(polls.data(), polls.size(), deadline.at_most(tree_look_seconds).remaining_ms());
    if (polls[0].revents != 0) return;
    for (std::size_t i = 0; i < neighbours_.size(); ++i) {
      if (polls[2 + i].revents != 0) hear(neighbours_[i]);
    }
    look_elsewhere();
    deadline.skip_standstill(tree_look_seconds);
    if (deadline.passed()) fail_late(peer);
  }
}

void TreeControlGroup::look_elsewhere() {
  if (const auto told = options_.waits->look()) pass_on(*told);
  if (options_.within == nullptr) return;
  if (const auto failed = options_.within->failure()) pass_on(*failed);
}

void TreeControlGroup::fail_late(const Neighbour& peer) {
  std::vector<int> missing = options_.waits->missing();
  hear_all();
  look_elsewhere();
  check_not_failed();
  if (missing.empty()) missing = {options_.tcp.name_of(peer.rank)};
  fail_with(ErrorCode::timeout, fmt::format("{} timed out after {:g} s: waiting for {}", doing(),
                                            options_.tcp.timeout_seconds, name_ranks(missing)));
}

std::optional<GroupFailure> TreeControlGroup::failure() {
  if (auto failed = known()) return failed;
  hear_all();
  look_elsewhere();
  return known();
}

/// Reads the messages of the neighbours, without waiting.
void TreeControlGroup::hear_all() {
  for (Neighbour& neighbour : neighbours_) {
    pollfd alarm{neighbour.alarm.get(), POLLIN, 0};
    if (!neighbour.left && !known() && ::poll(&alarm, 1, 0) > 0) hear(neighbour);
  }
}

/// Reads the messages of a neighbour about itself or about what it was told.
void TreeControlGroup::hear(Neighbour& from) {
  Word word;
  Deadline deadline = Deadline::after(last_word_seconds);
  if (receive_all(from.alarm.get(), memory_of(word), deadline) != Transfer::done ||
      word.bytes > word_bytes_max) {
    spread({ErrorCode::comm,
            fmt::format("{}: rank {} is gone", doing(), options_.tcp.name_of(from.rank))});
    return;
  }
  if (word.kind == Word::left) {
    from.left = true;
    return;
  }
  std::string text(word.bytes, '\0');
  receive_all(from.alarm.get(), {reinterpret_cast<std::uint8_t*>(text.data()), text.size()},
              deadline);
  pass_on({static_cast<ErrorCode>(word.code), text});
}

/// Handles the end of the data connection of `peer`, which may have sent the reason.
void TreeControlGroup::fail_lost(Neighbour& peer) {
  if (!peer.left) hear(peer);
  check_not_failed();
  fail_with(ErrorCode::comm, fmt::format("{}: rank {} has left the group", doing(),
                                         options_.tcp.name_of(peer.rank)));
}

void TreeControlGroup::check_same(const Frame& frame, const Neighbour& from) {
  if (frame.header.what == current_ && frame.header.operation == operations_) return;
  fail_with(ErrorCode::comm,
            fmt::format("the ranks disagree: rank {} does {}, rank {} does {}",
                        options_.tcp.name_of(rank()), to_string(current_),
                        options_.tcp.name_of(from.rank), to_string(frame.header.what)));
}

std::optional<GroupFailure> TreeControlGroup::known() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void TreeControlGroup::check_not_failed() const {
  if (const auto failed = known()) throw_failure(*failed, doing());
}

void TreeControlGroup::fail_with(ErrorCode code, const std::string& message) {
  spread({code, message});
  check_not_failed();
  throw Error(code, message);
}

void TreeControlGroup::spread(const GroupFailure& failure) noexcept {
  pass_on(failure);
  if (own_waits_) own_waits_->tell(failure);
}

void TreeControlGroup::pass_on(const GroupFailure& failure) noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_) return;
  failure_ = failure;
  ::eventfd_write(wake_.get(), 1);
  for (const Neighbour& to : neighbours_) {
    send_word(to.alarm.get(), {Word::failure, static_cast<std::int32_t>(failure.code)},
              failure.why);
  }
}

std::string TreeControlGroup::doing() const {
  return fmt::format("{} on rank {}", to_string(current_), options_.tcp.name_of(rank()));
}

}  // namespace dstrain::comm
