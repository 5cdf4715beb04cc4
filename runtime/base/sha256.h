#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace dstrain {

using Digest = std::array<std::uint8_t, 32>;

/// Computes SHA-256 (FIPS 180-4) in plain C++: about 300 MB/s.
Digest sha256(std::span<const std::uint8_t> message);
Digest sha256(std::string_view message);

/// Computes HMAC-SHA256 (RFC 2104). The key may have any length, including 0.
Digest hmac_sha256(std::span<const std::uint8_t> key, std::span<const std::uint8_t> message);

/// Compares in a time that does not depend on where the first difference is.
bool equal_in_constant_time(const Digest& left, const Digest& right);

}  // namespace dstrain
