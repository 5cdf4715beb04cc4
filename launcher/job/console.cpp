#include "launcher/job/console.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>

#include "runtime/base/clock.h"
#include "runtime/base/printable.h"

namespace dstrain::launcher {
namespace {

constexpr double last_output_seconds = 5;
constexpr std::array<std::string_view, 5> levels{"debug", "info", "warning", "error", "critical"};

std::ptrdiff_t severity(std::string_view level) {
  return std::find(levels.begin(), levels.end(), level) - levels.begin();
}

}  // namespace

Console::Console(int world_size, std::string log_level, LogMux::Prefixes prefixes)
    : log_level_(std::move(log_level)),
      out_(STDOUT_FILENO),
      err_(STDERR_FILENO),
      mux_(world_size, out_, err_, prefixes) {}

void Console::say(std::string_view level, const std::string& text) {
  if (severity(level) < severity(log_level_)) return;
  mux_.own_lines(fmt::format("dstrain: {}: {}", level, printable_message(text)));
}

void Console::add_polls(std::vector<pollfd>& fds) const {
  fds.push_back({out_.pending_bytes() > 0 ? out_.fd() : -1, POLLOUT, 0});
  fds.push_back({err_.pending_bytes() > 0 ? err_.fd() : -1, POLLOUT, 0});
}

void Console::flush() {
  out_.flush();
  err_.flush();
}

std::string Console::output_failure() const {
  if (out_.error() == 0 || out_.error() == EPIPE) return "";
  return fmt::format("write to stdout: {}; lines of the ranks are lost",
                     std::generic_category().message(out_.error()));
}

void Console::drain(SignalSource& signals, bool signal_came) {
  const SteadyClock clock;
  const double end = clock.now_seconds() + last_output_seconds;
  for (;;) {
    flush();
    if (pending_bytes() == 0 || (signal_came && clock.now_seconds() > end)) return;
    std::vector<pollfd> fds{{signals.fd(), POLLIN, 0}};
    add_polls(fds);
    poll(fds.data(), fds.size(), signal_came ? 100 : -1);
    while (const auto signal = signals.next()) {
      if (signal->number != SIGCHLD) return;
    }
  }
}

}  // namespace dstrain::launcher
