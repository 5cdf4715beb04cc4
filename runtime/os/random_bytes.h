#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dstrain {

/// Fills `bytes` from the kernel's generator: for nonces and secrets, never for training.
void fill_random(std::span<std::uint8_t> bytes);

template <std::size_t count>
std::array<std::uint8_t, count> random_bytes() {
  std::array<std::uint8_t, count> bytes{};
  fill_random(bytes);
  return bytes;
}

/// Returns "0aff...": two lower-case digits per byte.
std::string to_hex(std::span<const std::uint8_t> bytes);

}  // namespace dstrain
