#pragma once
#include <cstdint>

namespace dstrain {

enum class DeviceKind : std::uint8_t { cpu, cuda };

/// Which accelerator of this process's node.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  friend constexpr bool operator==(const Device&, const Device&) = default;
};

}  // namespace dstrain
