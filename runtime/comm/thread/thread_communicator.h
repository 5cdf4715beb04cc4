#pragma once
#include <memory>
#include <vector>

#include "runtime/comm/communicator.h"

namespace dstrain::comm {

/// Makes the communicators of a group whose ranks are threads of this process, in rank order; each
/// is used by one thread. They read each other's tensors in place, without a copy. The last one to
/// be destroyed frees the shared state. A wait fails after `timeout_seconds`. Tensors of a rank
/// that failed must outlive the other ranks' use of the group, which may still read them.
std::vector<std::unique_ptr<Communicator>> make_thread_group(int size,
                                                             double timeout_seconds = 600);

}  // namespace dstrain::comm
