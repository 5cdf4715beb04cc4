#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace dstrain {

/// A size in memory or on disk.
using Bytes = std::int64_t;

constexpr Bytes kibibyte = 1024;
constexpr Bytes mebibyte = 1024 * kibibyte;
constexpr Bytes gibibyte = 1024 * mebibyte;

/// Parses "1536", "512MiB", "2G" (binary, as 2GiB), "1.5GB" (decimal), case-insensitive, to bytes.
Result<Bytes> parse_bytes(std::string_view text);

/// 1536 -> "1.50 KiB": three significant digits and a binary unit.
std::string format_bytes(Bytes bytes);

/// 93 s -> "1m33s". Negative values count as zero; NaN is "?".
std::string format_duration(double seconds);

/// Returns "1 rank", "2 ranks".
std::string counted(std::int64_t count, std::string_view noun);

/// Returns the smallest multiple of `alignment` that is at least `value`; both non-negative.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace dstrain
