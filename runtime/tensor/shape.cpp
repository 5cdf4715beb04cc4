#include "runtime/tensor/shape.h"

#include <fmt/ranges.h>

namespace dstrain {

std::string to_string(const Shape& shape) {
  return fmt::format("({})", fmt::join(shape.extents(), ", "));
}

}  // namespace dstrain
