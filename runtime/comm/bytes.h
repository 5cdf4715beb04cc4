#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "runtime/base/units.h"
#include "runtime/tensor/dtype.h"

namespace dstrain::comm {

/// Bytes of an element of a sum: sums are taken in f32.
inline constexpr Bytes float_bytes = size_of(DType::f32);

/// The bytes of a message of plain data. A type with padding is refused: what lies there is
/// unknown.
template <class Message>
requires std::has_unique_object_representations_v<Message> std::span<std::uint8_t> bytes_of(
    Message& message) {
  return {reinterpret_cast<std::uint8_t*>(&message), sizeof(Message)};
}
template <class Message>
requires std::has_unique_object_representations_v<Message> std::span<const std::uint8_t> bytes_of(
    const Message& message) {
  return {reinterpret_cast<const std::uint8_t*>(&message), sizeof(Message)};
}

/// Copies `bytes` bytes, none when both are one place. The two overlap wholly or not at all.
inline void copy_bytes(const void* from, void* to, Bytes bytes) {
  if (from == to || bytes == 0) return;
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace dstrain::comm
