#include "launcher/hosts/host_agent.h"

#include <algorithm>

#include "launcher/hosts/remote_link.h"
#include "launcher/process/program_path.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t shown_noise_bytes = 200;
/// glibc's loader prints this.
constexpr std::string_view missing_library = "error while loading shared libraries";

}  // namespace

HostAgent::HostAgent(const HostTask& task, std::unique_ptr<AgentLink> link)
    : task_(task),
      link_(std::move(link)),
      pipe_({link_->read_fd(), link_->write_fd()}, FramePipe::Begin::after_preamble) {}

int HostAgent::check_rank(int rank) const {
  if (rank < first_rank() || rank >= first_rank() + ranks()) {
    fail(ErrorCode::remote, "agent protocol: rank {} is not one of {}..{}", rank, first_rank(),
         first_rank() + ranks() - 1);
  }
  return rank;
}

void HostAgent::add_polls(std::vector<pollfd>& fds) const {
  const bool open = state != State::ended;
  fds.push_back({open ? pipe_.read_fd() : -1, POLLIN, 0});
  fds.push_back({open && pipe_.pending_bytes() > 0 ? pipe_.write_fd() : -1, POLLOUT, 0});
}

bool HostAgent::receive(std::span<const pollfd> fds, OnFrame on_frame) {
  if (fds[0].revents == 0) return true;
  const bool open = pipe_.receive();
  while (const auto frame = pipe_.next()) on_frame(*frame);
  return open;
}

void HostAgent::flush() {
  if (state == State::ended || pipe_.flush()) return;
  pipe_.drop_pending();  // the agent is gone; the end of its stream says why
}

void HostAgent::acknowledge() {
  if (owed_acks == 0) return;
  WireWriter ack;
  ack.u32(static_cast<std::uint32_t>(owed_acks));
  pipe_.send(ToAgent::ack, ack.take());
  owed_acks = 0;
}

std::string HostAgent::end_reason() {
  if (state == State::connecting && pipe_.noise().find(absent_line) != std::string::npos) {
    return fmt::format(
        "no executable dstrain there, neither at {} nor on PATH; pass --copy_binary to copy it",
        own_path());
  }
  std::string reason = link_->end_reason();
  if (reason.empty()) reason = "the connection was closed";
  if (state == State::connecting && reason.find(missing_library) != reason.npos) {
    reason += "; pass --copy_binary to copy dstrain with its libraries";
  }
  if (state == State::connecting && !pipe_.noise().empty()) {
    reason += fmt::format("; it printed \"{}\"", noise());
  }
  return reason;
}

std::string HostAgent::noise() const {
  std::string text = pipe_.noise();
  if (text.size() > shown_noise_bytes) text.erase(0, text.size() - shown_noise_bytes);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  const std::size_t last = text.find_last_not_of(' ');
  return text.substr(0, last == std::string::npos ? 0 : last + 1);
}

}  // namespace dstrain::launcher
