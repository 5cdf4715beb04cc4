#include "launcher/hosts/relay_channel.h"

#include <array>
#include <cerrno>

#include <unistd.h>

#include "launcher/process/pipes.h"
#include "launcher/protocol/protocol.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t read_bytes = 64U << 10;
constexpr std::size_t queued_bytes_max = 4U << 20;

enum class Got { something, nothing, end };

Got read_some(int fd, std::string& into) {
  std::array<char, read_bytes> buffer;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Got::nothing;
    if (got <= 0) return Got::end;
    into.append(buffer.data(), static_cast<std::size_t>(got));
    return Got::something;
  }
}

/// False if the reader is gone.
bool write_some(int fd, std::string& from) {
  while (!from.empty()) {
    const ssize_t put = write(fd, from.data(), from.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno == EAGAIN;
    from.erase(0, static_cast<std::size_t>(put));
  }
  return true;
}

}  // namespace

RelayChannel::RelayChannel(UniqueFd launcher, double silence_seconds)
    : launcher_(std::move(launcher)) {
  beats_.agree_on(silence_seconds);
  make_non_blocking(launcher_.get());
}

void RelayChannel::open(std::unique_ptr<AgentLink> link, double now) {
  link_ = std::move(link);
  link_open_ = true;
  beats_.received(now);
  make_non_blocking(link_->read_fd());
  make_non_blocking(link_->write_fd());
}

void RelayChannel::give_up(const std::string& reason) {
  reason_ = reason;
  if (link_open_) link_->abandon();
  link_open_ = false;
  ended_ = true;
}

void RelayChannel::add_polls(std::vector<pollfd>& fds) const {
  const bool room = to_agent_.size() < queued_bytes_max;
  const bool drained = to_launcher_.size() < queued_bytes_max;
  const int events = (room ? POLLIN : 0) | (to_launcher_.empty() ? 0 : POLLOUT);
  fds.push_back({launcher_.get(), static_cast<short>(events), 0});
  fds.push_back({link_open_ && drained ? link_->read_fd() : -1, POLLIN, 0});
  fds.push_back({link_open_ && !to_agent_.empty() ? link_->write_fd() : -1, POLLOUT, 0});
  fds.push_back({link_open_ ? link_->notes_fd() : -1, POLLIN, 0});
}

void RelayChannel::read_launcher() {
  std::string bytes;
  const Got got = read_some(launcher_.get(), bytes);
  frames_.feed(bytes);
  while (const auto frame = frames_.next()) {
    append_frame(to_agent_, frame->type, frame->payload);
    agent_has_spoken_ = true;
  }
  if (got == Got::end) ended_ = true;
}

void RelayChannel::read_link(double now) {
  const Got got = read_some(link_->read_fd(), to_launcher_);
  if (got == Got::something) beats_.received(now);
  if (got != Got::end) return;
  link_open_ = false;
  reason_ = link_->end_reason();
}

/// Beats go between the launcher's frames, which are queued whole.
void RelayChannel::beat(double now) {
  if (!beats_.take_turn(now)) return;
  WireWriter beat;
  beat.u32(static_cast<std::uint32_t>(beats_.silence_seconds() * 1000));
  append_frame(to_agent_, static_cast<std::uint8_t>(ToAgent::beat), beat.take());
}

void RelayChannel::check_silence(double now) {
  if (!agent_has_spoken_ || !beats_.is_silent(now)) return;
  reason_ = fmt::format("it sent nothing for {} s", beats_.silence_seconds());
  link_->abandon();
  link_open_ = false;
}

void RelayChannel::write_out() {
  // A link that accepts nothing more has an end to read.
  if (link_open_ && !write_some(link_->write_fd(), to_agent_)) to_agent_.clear();
  if (!write_some(launcher_.get(), to_launcher_)) ended_ = true;
  if (has_link() && !link_open_ && to_launcher_.empty()) ended_ = true;
}

void RelayChannel::advance(std::span<const pollfd> fds, double now) {
  if (ended_) return;
  if (fds[0].revents != 0) read_launcher();
  if (fds[1].revents != 0) read_link(now);
  if (fds[3].revents != 0) link_->read_notes();
  if (link_open_) check_silence(now);
  if (link_open_) beat(now);
  write_out();
}

std::string RelayChannel::take_end_reason() {
  return std::move(reason_);
}

}  // namespace dstrain::launcher
