// A rank that prints numbered lines: line_rank LINES LINES_PER_SECOND, 0 for as fast as it can.
#include <cstdint>
#include <cstdlib>
#include <string>

#include <sys/timerfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/base/number.h"
#include "runtime/base/unique_handle.h"

namespace {

/// A clock that ticks so many times a second.
dstrain::UniqueFd ticks(long per_second) {
  dstrain::UniqueFd clock(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  constexpr long second = 1'000'000'000;
  const timespec period{.tv_sec = 1 / per_second, .tv_nsec = second / per_second % second};
  const itimerspec every{.it_interval = period, .it_value = period};
  timerfd_settime(clock.get(), 0, &every, nullptr);
  return clock;
}

/// Waits for the next ticks; how many there were since the last call.
std::uint64_t wait_for_ticks(const dstrain::UniqueFd& clock) {
  std::uint64_t number = 0;
  return read(clock.get(), &number, sizeof number) == sizeof number ? number : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const long lines = argc > 2 ? dstrain::parse_number<long>(argv[1]).value() : 0;
  const long rate = argc > 2 ? dstrain::parse_number<long>(argv[2]).value() : 0;
  const std::string rank = std::getenv("RANK");
  const dstrain::UniqueFd clock = rate > 0 ? ticks(rate) : dstrain::UniqueFd();
  std::uint64_t ticked = 0;
  for (long i = 0; i < lines; ++i) {
    if (clock && ticked == 0) ticked = wait_for_ticks(clock);
    if (clock) --ticked;
    const std::string line = fmt::format("{} {} größer als je zuvor, 0123456789\n", rank, i);
    for (std::size_t at = 0; at < line.size();) {
      const ssize_t written = write(STDOUT_FILENO, line.data() + at, line.size() - at);
      if (written < 0) return 1;
      at += static_cast<std::size_t>(written);
    }
  }
  return 0;
}
