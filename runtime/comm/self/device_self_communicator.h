#pragma once
#include <memory>

#include "runtime/comm/communicator.h"

namespace dstrain::comm {

/// The only rank of a group whose tensors lie on a device: what a collective gives lies where it
/// was, or is copied on the stream. Observers are told of begin and end when that is launched.
/// `host`, the same rank's communicator of host memory, is kept, as its memory may be in use; or
/// null.
std::unique_ptr<Communicator> make_device_self_communicator(std::unique_ptr<Communicator> host);

}  // namespace dstrain::comm
