#include "runtime/numeric/exact_sum.h"

#include <cmath>

namespace dstrain {

double ExactSum::value() const {
  return value_by([](double value, int exponent) { return std::ldexp(value, exponent); });
}

}  // namespace dstrain
