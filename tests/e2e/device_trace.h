#pragma once
#include <nlohmann/json.hpp>

namespace dstrain::test {

/// What holds for the trace of every run on devices that tell when they did what: lanes in order,
/// a step's work within it, sums as the spans have them, nothing that the host does among what the
/// device does.
struct DeviceTrace {
  int ranks;
  int steps;
};
void check_device_trace(const nlohmann::json& trace, const DeviceTrace& expected);

}  // namespace dstrain::test
