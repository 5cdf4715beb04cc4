#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dstrain::launcher {

/// Frames on a byte stream: u32 length (little-endian, of what follows), u8 type, payload.
struct Frame {
  std::uint8_t type = 0;
  std::string payload;
};

inline constexpr std::size_t frame_bytes_max = 64U << 20;

/// Appends one frame to `stream`.
void append_frame(std::string& stream, std::uint8_t type, std::string_view payload);

/// Takes bytes as they come and gives whole frames back. Never holds more than one frame plus the
/// last fed bytes. Throws Error{remote} for a length that our peers never send.
class FrameReader {
 public:
  void feed(std::string_view bytes) { buffer_.append(bytes); }
  std::optional<Frame> next();
  [[nodiscard]] bool empty() const { return position_ == buffer_.size(); }

 private:
  std::string buffer_;
  std::size_t position_ = 0;
};

/// Builds a payload: fixed-width little-endian numbers and length-prefixed byte strings.
class WireWriter {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(static_cast<char>(value)); }
  void u32(std::uint32_t value);
  void i32(std::int32_t value) { u32(static_cast<std::uint32_t>(value)); }
  void u64(std::uint64_t value);
  void i64(std::int64_t value) { u64(static_cast<std::uint64_t>(value)); }
  void count(std::size_t value);
  void string(std::string_view value);
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads a payload. Every method throws Error{remote} when the bytes run out.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}
  std::uint8_t u8();
  std::uint32_t u32();
  std::int32_t i32() { return static_cast<std::int32_t>(u32()); }
  std::uint64_t u64();
  std::int64_t i64() { return static_cast<std::int64_t>(u64()); }
  /// A number of elements that follow, of at least `bytes_each`; no more than can be there.
  std::size_t count(std::size_t bytes_each);
  std::string_view string();
  /// Throws when bytes are left over.
  void finish() const;

 private:
  std::string_view take(std::size_t size);
  std::string_view bytes_;
};

}  // namespace dstrain::launcher
