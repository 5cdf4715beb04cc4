#pragma once
#include <cstdint>
#include <vector>

#include "tests/support/random_values.h"

namespace dstrain::test {

/// Parameters with Adam's moments, drawn at random.
struct MomentState {
  explicit MomentState(std::int64_t numel)
      : p(random_values(numel, 1)),
        m(random_values(numel, 2, 0.1F)),
        v(random_values(numel, 3, 0.01F)) {
    for (float& value : v) value = value * value;
  }
  std::vector<float> p;
  std::vector<float> m;
  std::vector<float> v;
};

}  // namespace dstrain::test
