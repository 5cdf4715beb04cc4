#pragma once
#include <memory>

#include "runtime/backend/backend.h"
#include "runtime/rank/worker_env.h"

namespace dstrain {

/// The kind of device that a choice stands for on this machine. `automatic` is a GPU where there
/// are some (gpu_files.h) and their plug-in is installed, else the CPU.
DeviceKind resolve_device(DeviceChoice choice);

/// Starts the backend of a device, from its plug-in where that is not the CPU's, and makes its ops
/// known. Throws Error{config} that names --device where the plug-in is missing or of another
/// version, or the device does not start.
std::unique_ptr<Backend> open_backend(Device device);

}  // namespace dstrain
