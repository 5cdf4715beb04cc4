#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace dstrain {

/// Up to four extents, outermost first; (B, T, C) for an activation. A scalar has none.
class Shape {
 public:
  static constexpr std::size_t rank_max = 4;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::int64_t> extents)
      : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}
  constexpr explicit Shape(std::span<const std::int64_t> extents) : rank_(extents.size()) {
    for (std::size_t i = 0; i < rank_; ++i) extents_.at(i) = extents[i];
  }

  [[nodiscard]] constexpr std::size_t rank() const { return rank_; }
  [[nodiscard]] constexpr std::int64_t operator[](std::size_t axis) const {
    return extents_.at(axis);
  }
  [[nodiscard]] constexpr std::span<const std::int64_t> extents() const {
    return {extents_.data(), rank_};
  }
  [[nodiscard]] constexpr std::int64_t numel() const {
    std::int64_t product = 1;
    for (const std::int64_t extent : extents()) product *= extent;
    return product;
  }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::int64_t, rank_max> extents_{};
  std::size_t rank_ = 0;
};

/// Returns "(2, 3)".
std::string to_string(const Shape& shape);

}  // namespace dstrain
