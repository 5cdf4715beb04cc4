#pragma once
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/os/token_proof.h"

/// The protocol between TcpStore's clients and server.
///
/// The client first proves the job's token (token_proof.h). Then come frames: a length of 4 bytes,
/// little endian, at most frame_bytes_max, and that many bytes.
namespace dstrain::comm {

constexpr std::uint32_t frame_bytes_max = 1U << 20;

constexpr Magic store_magic{'d', 's', 't', 'r', 's', 't', 'o', '1'};

enum class Verb : std::uint8_t { set = 's', get = 'g', add = 'a', gather = 'l' };

/// A client's request. The answer is a frame with the value (for get and add), the values of all
/// ranks (for gather, as in packed_texts.h) or nothing (for set).
struct StoreRequest {
  Verb verb = Verb::get;
  std::string key;
  /// For set, the value; for add, the delta as decimal text; for gather, the number of ranks as
  /// decimal text, a blank, and the rank and its value as in packed_texts.h.
  std::string value;
};

/// Returns the whole frame, with its length. Throws Error{internal} if it is over frame_bytes_max.
std::vector<std::uint8_t> encode_frame(std::string_view payload);
std::vector<std::uint8_t> encode_request(const StoreRequest& request);
/// Returns the request in a frame's payload; nothing if it is malformed.
std::optional<StoreRequest> decode_request(std::span<const std::uint8_t> payload);

std::uint32_t decode_length(std::span<const std::uint8_t, 4> bytes);

/// Adds to a counter and returns the sum. Counters are decimal text, so that get() can read them; a
/// value that is not a number counts as 0.
inline std::int64_t add_to_counter(std::string& value, std::int64_t delta) {
  std::int64_t sum = 0;
  std::from_chars(value.data(), value.data() + value.size(), sum);
  sum += delta;
  value = std::to_string(sum);
  return sum;
}

/// The values that ranks have given under one key.
struct GatheredValues {
  std::string packed;
  std::int64_t given = 0;
  /// Takes the value of a gather request. Returns whether all ranks have given theirs; false also
  /// for a malformed value.
  bool take(std::string_view value);
};

std::string gather_value(int rank, int size, std::string_view value);

}  // namespace dstrain::comm
