#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "runtime/tensor/shape.h"

namespace dstrain::model {

/// Finds the first NaN or infinity among elements [begin, begin + values.size()) of a parameter,
/// row-major. Returns its element, or -1.
std::int64_t find_not_finite(std::int64_t begin, std::span<const float> values);

/// Returns "[3, 17]": the indices of an element of a parameter of this shape.
std::string index_text(const Shape& shape, std::int64_t element);

}  // namespace dstrain::model
