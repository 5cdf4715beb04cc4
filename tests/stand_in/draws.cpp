#include "tests/stand_in/draws.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace dstrain::stand_in {

Draws Draws::next() {
  static std::atomic<std::uint64_t> launches{0};
  Draws draws;
  if (const char* const given = std::getenv("DSTRAIN_STAND_IN_SEED")) {
    const std::uint64_t seed = std::strtoull(given, nullptr, 10);
    draws.random_.emplace((seed << 32U) + launches.fetch_add(1));
  }
  return draws;
}

std::size_t Draws::below(std::size_t bound) {
  return drawn() ? (*random_)() % bound : 0;
}

}  // namespace dstrain::stand_in
