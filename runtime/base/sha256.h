#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace dstrain {

using Digest = std::array<std::uint8_t, 32>;

/// SHA-256 (FIPS 180-4), at plain C++ speed: some 300 MB/s.
Digest sha256(std::span<const std::uint8_t> message);
Digest sha256(std::string_view message);

/// HMAC-SHA256 (RFC 2104). A key of any length, also none.
Digest hmac_sha256(std::span<const std::uint8_t> key, std::span<const std::uint8_t> message);

/// Compares without telling by its duration where the first difference lies.
bool equal_in_constant_time(const Digest& left, const Digest& right);

}  // namespace dstrain
