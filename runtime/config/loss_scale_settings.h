#pragma once
#include <cstdint>

namespace dstrain::config {

/// How the loss is scaled, so that gradients are within reach of fp16: the section fp16, with
/// DeepSpeed's defaults.
struct LossScaleSettings {
  enum class Machine : std::uint8_t {
    fixed,  ///< the scale never changes
    zero,   ///< DeepSpeed's of ZeRO stages 1 to 3 (DynamicLossScaler)
    fused,  ///< its other one, of stage 0 (FP16_Optimizer): without hysteresis, and never gives up
  };
  Machine machine = Machine::fixed;
  double initial = 1;
  std::int64_t window = 1000;  ///< steps without overflow, after which the scale doubles
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;
  double least = 1;
};

}  // namespace dstrain::config
