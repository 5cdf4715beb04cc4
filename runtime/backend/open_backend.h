#pragma once
#include <memory>

#include "runtime/backend/backend.h"
#include "runtime/rank/worker_env.h"

namespace dstrain {

/// Returns the kind of device that a choice means on this machine. `automatic` is a GPU if there
/// are any (gpu_files.h) and their plug-in is installed, else the CPU.
DeviceKind resolve_device(DeviceChoice choice);

/// Starts the backend of a device, from its plug-in unless it is the CPU, and registers its ops.
/// Throws Error{config} that names --device if the plug-in is missing or of another version, or the
/// device does not start.
std::unique_ptr<Backend> open_backend(Device device);

}  // namespace dstrain
