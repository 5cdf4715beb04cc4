// A rank that prints numbered lines: line_rank LINES LINES_PER_SECOND, 0 for as fast as it can.
#include <cstdlib>
#include <string>

#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/base/clock.h"
#include "runtime/base/number.h"

int main(int argc, char** argv) {
  const long lines = argc > 2 ? dstrain::parse_number<long>(argv[1]).value() : 0;
  const double rate = argc > 2 ? dstrain::parse_number<double>(argv[2]).value() : 0;
  const std::string rank = std::getenv("RANK");
  const dstrain::SteadyClock clock;
  const double begin = clock.now_seconds();
  for (long i = 0; i < lines; ++i) {
    while (rate > 0 && static_cast<double>(i) > (clock.now_seconds() - begin) * rate) {
      poll(nullptr, 0, 5);
    }
    const std::string line = fmt::format("{} {} größer als je zuvor, 0123456789\n", rank, i);
    for (std::size_t at = 0; at < line.size();) {
      const ssize_t written = write(STDOUT_FILENO, line.data() + at, line.size() - at);
      if (written < 0) return 1;
      at += static_cast<std::size_t>(written);
    }
  }
  return 0;
}
