#pragma once
#include <cstdint>

namespace dstrain::config {

/// Scales the loss so that fp16 can represent the gradients. The section fp16, with DeepSpeed's
/// defaults.
struct LossScaleSettings {
  enum class Machine : std::uint8_t {
    fixed,  ///< the scale never changes
    zero,   ///< DeepSpeed's scaler for ZeRO stages 1 to 3 (DynamicLossScaler)
    fused,  ///< its scaler for stage 0 (FP16_Optimizer): no hysteresis, never gives up
  };
  Machine machine = Machine::fixed;
  double initial = 1;
  std::int64_t window = 1000;  ///< the scale doubles after this many steps without overflow
  std::int64_t hysteresis = 2;
  bool consecutive_hysteresis = false;
  double least = 1;
};

}  // namespace dstrain::config
