#pragma once
#include <cstddef>
#include <vector>

#include "runtime/base/function_ref.h"

namespace dstrain::test {

/// d f / d x by central differences; f reads x. In double, with steps of 1e-5, right to about 1e-9.
inline double central_difference(double& x, FunctionRef<double()> f) {
  constexpr double step = 1e-5;
  const double start = x;
  x = start + step;
  const double above = f();
  x = start - step;
  const double below = f();
  x = start;
  return (above - below) / (2 * step);
}

/// The gradient of f for the elements 0, stride, 2 stride ... of x.
inline std::vector<double> central_differences(std::vector<double>& x,
                                               FunctionRef<double()> f,
                                               std::size_t stride = 1) {
  std::vector<double> gradient;
  for (std::size_t i = 0; i < x.size(); i += stride) {
    gradient.push_back(central_difference(x[i], f));
  }
  return gradient;
}

/// Every `stride`-th of `values`.
inline std::vector<float> every(const std::vector<float>& values, std::size_t stride) {
  std::vector<float> picked;
  for (std::size_t i = 0; i < values.size(); i += stride) picked.push_back(values[i]);
  return picked;
}

/// The sum of a[i] b[i]: turns a tensor into a loss whose gradient is `b`.
template <class A, class B>
double weighted_sum(const A& a, const B& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

}  // namespace dstrain::test
