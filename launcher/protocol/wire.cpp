#include "launcher/protocol/wire.h"

#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

constexpr std::size_t header_bytes = 4;

void put_u32(std::string& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) {
    out.push_back(static_cast<char>((value >> shift) & 0xFF));
  }
}

std::uint32_t get_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

}  // namespace

void append_frame(std::string& stream, std::uint8_t type, std::string_view payload) {
  DSTRAIN_CHECK(payload.size() < frame_bytes_max, "a frame of {} bytes", payload.size());
  put_u32(stream, static_cast<std::uint32_t>(payload.size() + 1));
  stream.push_back(static_cast<char>(type));
  stream.append(payload);
}

std::optional<Frame> FrameReader::next() {
  const std::string_view rest = std::string_view(buffer_).substr(position_);
  if (rest.size() >= header_bytes) {
    const std::uint32_t size = get_u32(rest);
    if (size == 0 || size > frame_bytes_max) {
      fail(ErrorCode::remote, "agent protocol: a frame claims {} bytes", size);
    }
    if (rest.size() - header_bytes >= size) {
      position_ += header_bytes + size;
      return Frame{static_cast<std::uint8_t>(rest[header_bytes]),
                   std::string(rest.substr(header_bytes + 1, size - 1))};
    }
  }
  buffer_.erase(0, position_);
  position_ = 0;
  return std::nullopt;
}

void WireWriter::u32(std::uint32_t value) {
  put_u32(bytes_, value);
}

void WireWriter::u64(std::uint64_t value) {
  u32(static_cast<std::uint32_t>(value));
  u32(static_cast<std::uint32_t>(value >> 32));
}

void WireWriter::count(std::size_t value) {
  DSTRAIN_CHECK(value <= frame_bytes_max, "a count of {}", value);
  u32(static_cast<std::uint32_t>(value));
}

void WireWriter::string(std::string_view value) {
  count(value.size());
  bytes_.append(value);
}

std::string_view WireReader::take(std::size_t size) {
  if (size > bytes_.size()) fail(ErrorCode::remote, "agent protocol: a frame ends too early");
  const std::string_view taken = bytes_.substr(0, size);
  bytes_.remove_prefix(size);
  return taken;
}

std::uint8_t WireReader::u8() {
  return static_cast<std::uint8_t>(take(1).front());
}

std::uint32_t WireReader::u32() {
  return get_u32(take(4));
}

std::uint64_t WireReader::u64() {
  const std::uint64_t low = u32();
  return low | static_cast<std::uint64_t>(u32()) << 32;
}

std::size_t WireReader::count(std::size_t bytes_each) {
  const std::size_t value = u32();
  if (value > bytes_.size() / bytes_each)
    fail(ErrorCode::remote, "agent protocol: a frame ends too early");
  return value;
}

std::string_view WireReader::string() {
  return take(u32());
}

void WireReader::finish() const {
  if (!bytes_.empty()) {
    fail(ErrorCode::remote, "agent protocol: a frame has {} bytes too many", bytes_.size());
  }
}

}  // namespace dstrain::launcher
