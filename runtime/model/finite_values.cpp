#include "runtime/model/finite_values.h"

#include <algorithm>
#include <bit>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dstrain::model {
namespace {

constexpr std::uint32_t exponent_bits = 0x7F800000U;

bool is_not_finite(float value) {
  return (std::bit_cast<std::uint32_t>(value) & exponent_bits) == exponent_bits;
}

}  // namespace

std::int64_t find_not_finite(std::int64_t begin, std::span<const float> values) {
  unsigned found = 0;  // no early exit, so that the loop is vectorized
  for (const float value : values) found |= static_cast<unsigned>(is_not_finite(value));
  if (found == 0) return -1;
  return begin + (std::ranges::find_if(values, is_not_finite) - values.begin());
}

std::string index_text(const Shape& shape, std::int64_t element) {
  std::vector<std::int64_t> indices;
  const auto extents = shape.extents();
  for (auto extent = extents.rbegin(); extent != extents.rend(); ++extent) {
    indices.push_back(element % *extent);
    element /= *extent;
  }
  std::ranges::reverse(indices);
  return fmt::format("[{}]", fmt::join(indices, ", "));
}

}  // namespace dstrain::model
