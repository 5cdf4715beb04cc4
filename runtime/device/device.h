#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace dstrain {

enum class DeviceKind : std::uint8_t { cpu, cuda };
inline constexpr std::size_t device_kinds = 2;

/// Returns the name in --device.
constexpr const char* name_of(DeviceKind kind) {
  return std::array<const char*, device_kinds>{"cpu", "cuda"}.at(static_cast<std::size_t>(kind));
}

/// Whether its memory is the host's, so that no copies between them are needed.
constexpr bool shares_host_memory(DeviceKind kind) {
  return kind == DeviceKind::cpu;
}

/// An accelerator of this process's node.
struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  friend constexpr bool operator==(const Device&, const Device&) = default;
};

}  // namespace dstrain
