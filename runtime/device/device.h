#pragma once
#include <cstddef>
#include <cstdint>

namespace dstrain {

enum class DeviceKind : std::uint8_t { cpu, cuda };
inline constexpr std::size_t device_kinds = 2;

/// Which accelerator of this process's node.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  friend constexpr bool operator==(const Device&, const Device&) = default;
};

}  // namespace dstrain
