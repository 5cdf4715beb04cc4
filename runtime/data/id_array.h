#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dstrain::data {

/// How token ids are stored, little-endian.
enum class IdType { u8, i8, u16, i16, u32, i32, i64, f32, f64 };

/// Bytes of one id.
std::int64_t bytes_of(IdType type);

/// Token ids as they lie in a mapped file, of any type and aligned or not. Does not own the bytes.
class IdArray {
 public:
  IdArray() = default;
  /// Of as many ids as there are whole ones in `bytes`.
  IdArray(IdType type, std::span<const std::byte> bytes);

  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Writes ids [begin, begin + ids.size()). Throws Error{input}, which begins with `path`, and
  /// names the position and value of an id that is not in [0, vocabulary), or is no whole number.
  void read(std::int64_t begin,
            std::span<std::int32_t> ids,
            std::int64_t vocabulary,
            const std::string& path) const;

 private:
  IdType type_ = IdType::u8;
  std::span<const std::byte> bytes_;
  std::int64_t size_ = 0;
};

}  // namespace dstrain::data
