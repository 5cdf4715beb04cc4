#pragma once
#include "runtime/base/clock.h"

namespace dstrain::test {

/// A clock that the test sets.
class HandClock final : public Clock {
 public:
  [[nodiscard]] double now_seconds() const override { return now; }
  double now = 100;
};

}  // namespace dstrain::test
