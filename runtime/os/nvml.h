#pragma once

/// The types and constants of NVIDIA's management library that are used here, as in its reference
/// (nvml.h), so that the toolkit need not be installed.
namespace dstrain::nvml {

using Status = int;
inline constexpr Status success = 0;
inline constexpr Status not_supported = 3;
inline constexpr Status not_found = 6;
inline constexpr Status timed_out = 10;
inline constexpr Status function_not_found = 13;

using Handle = void*;  ///< a GPU, or a set of events

struct Utilization {
  unsigned gpu;  ///< per cent
  unsigned memory;
};

struct Event {
  Handle device;
  unsigned long long type;
  unsigned long long data;  ///< for an Xid, its number
  unsigned gpu_instance;
  unsigned compute_instance;
};

inline constexpr int temperature_of_gpu = 0;
inline constexpr int uncorrected = 1;
inline constexpr int since_driver = 0;
inline constexpr unsigned long long xid_events = 0x8;
inline constexpr unsigned long long slowed_by_heat = 0x20 | 0x40;
inline constexpr unsigned long long slowed_by_supply = 0x80;

}  // namespace dstrain::nvml
