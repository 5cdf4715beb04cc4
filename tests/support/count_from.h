#pragma once
#include <cstdlib>

#include "runtime/base/number.h"

namespace dstrain::test {

/// The number in an environment variable, which sets how long a storm is, or `otherwise` where it
/// is not set. Anything but a number ends the test.
inline int count_from(const char* variable, int otherwise) {
  const char* const typed = std::getenv(variable);
  return typed != nullptr ? parse_number<int>(typed).value() : otherwise;
}

}  // namespace dstrain::test
