#include "runtime/comm/store/protocol.h"

#include <algorithm>
#include <array>

#include "runtime/base/error.h"
#include "runtime/comm/packed_texts.h"

namespace dstrain::comm {
namespace {

std::array<std::uint8_t, 4> encode_length(std::size_t length) {
  DSTRAIN_CHECK(length <= frame_bytes_max, "a store message of {} bytes", length);
  return {static_cast<std::uint8_t>(length), static_cast<std::uint8_t>(length >> 8),
          static_cast<std::uint8_t>(length >> 16), static_cast<std::uint8_t>(length >> 24)};
}

}  // namespace

std::uint32_t decode_length(std::span<const std::uint8_t, 4> bytes) {
  return std::uint32_t{bytes[0]} | std::uint32_t{bytes[1]} << 8 | std::uint32_t{bytes[2]} << 16 |
         std::uint32_t{bytes[3]} << 24;
}

std::vector<std::uint8_t> encode_frame(std::string_view payload) {
  const auto length = encode_length(payload.size());
  std::vector<std::uint8_t> frame(length.size() + payload.size());
  std::ranges::copy(payload, std::ranges::copy(length, frame.begin()).out);
  return frame;
}

/// Verb, length of the key, key, value.
std::vector<std::uint8_t> encode_request(const StoreRequest& request) {
  const auto key_length = encode_length(request.key.size());
  std::string payload(1, static_cast<char>(request.verb));
  payload.append(key_length.begin(), key_length.end());
  return encode_frame(payload + request.key + request.value);
}

std::optional<StoreRequest> decode_request(std::span<const std::uint8_t> payload) {
  constexpr std::size_t head = 5;
  if (payload.size() < head) return std::nullopt;
  const auto verb = static_cast<Verb>(payload[0]);
  if (verb != Verb::set && verb != Verb::get && verb != Verb::add && verb != Verb::gather) {
    return std::nullopt;
  }
  const std::size_t key_length = decode_length(payload.subspan<1, 4>());
  const auto text = payload.subspan(head);
  if (key_length > text.size()) return std::nullopt;
  const auto key = text.first(key_length);
  const auto value = text.subspan(key_length);
  return StoreRequest{verb, {key.begin(), key.end()}, {value.begin(), value.end()}};
}

std::string gather_value(int rank, int size, std::string_view value) {
  std::string text = std::to_string(size) + ' ';
  pack_text(text, rank, value);
  return text;
}

bool GatheredValues::take(std::string_view value) {
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
  if (error != std::errc{} || end == value.data() + value.size() || *end != ' ') return false;
  packed.append(end + 1, value.data() + value.size());
  return ++given == size;
}

}  // namespace dstrain::comm
