#include "runtime/os/random_bytes.h"

#include <cerrno>

#include <sys/random.h>

#include "runtime/base/error.h"

namespace dstrain {

void fill_random(std::span<std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno(errno, "getrandom");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace dstrain
