#pragma once
#include <memory>

#include "runtime/comm/communicator.h"

namespace dstrain::comm {

/// Makes the communicator of the only rank of a group whose tensors are on a device: the result of
/// a collective stays in place or is copied on the stream. Observers get begin and end at launch.
/// `host`, the same rank's communicator of host memory, is kept because its memory may be in use;
/// may be null.
std::unique_ptr<Communicator> make_device_self_communicator(std::unique_ptr<Communicator> host);

}  // namespace dstrain::comm
