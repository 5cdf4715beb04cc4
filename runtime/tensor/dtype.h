#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/base/units.h"

namespace dstrain {

enum class DType : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8, u16 };

constexpr Bytes size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
    case DType::u16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

/// Whether the dtype has 16 bits and is rounded from f32 results.
constexpr bool is_half(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

/// Returns "bf16".
constexpr std::string_view name_of(DType dtype) {
  constexpr std::array<std::string_view, 8> names{"f32", "f64", "f16", "bf16",
                                                  "i32", "i64", "u8",  "u16"};
  return names.at(static_cast<std::size_t>(dtype));
}

/// The DType of a C++ type: dtype_of<float> is f32. A type without one does not compile.
template <class T>
inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "no tensor holds elements of this type");
  return DType::u8;
}();
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<std::uint16_t> = DType::u16;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;

}  // namespace dstrain
