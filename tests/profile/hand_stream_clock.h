#pragma once
#include <map>

#include "runtime/device/stream_clock.h"

namespace dstrain::test {

/// A device's times that the test sets, stamp by stamp.
class HandStreamClock final : public StreamClock {
 public:
  void compare() override { ++compared; }
  [[nodiscard]] double error_seconds() const override { return 0.25; }
  Stamp stamp(StreamView /*stream*/) noexcept override { return stamped++; }
  std::optional<double> seconds(Stamp stamp) override {
    const auto found = reached.find(stamp);
    return found == reached.end() ? std::nullopt : std::optional(found->second);
  }
  void wait_for(Stamp stamp) override { waited = stamp; }

  std::map<Stamp, double> reached;
  Stamp stamped = 0;  ///< how many
  std::optional<Stamp> waited;
  int compared = 0;
};

}  // namespace dstrain::test
