#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dstrain::data {

/// The storage type of token ids, little-endian.
enum class IdType { u8, i8, u16, i16, u32, i32, i64, f32, f64 };

/// Returns the bytes of one id.
std::int64_t bytes_of(IdType type);

/// Token ids in a mapped file, of any type, aligned or not. Does not own the bytes.
class IdArray {
 public:
  IdArray() = default;
  /// Makes an array of the whole ids in `bytes`.
  IdArray(IdType type, std::span<const std::byte> bytes);

  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Writes ids [begin, begin + ids.size()). Throws Error{input}, which begins with `path`, and
  /// names the position and value of an id that is not an integer in [0, vocabulary).
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
