#pragma once
#include <memory>

#include "runtime/comm/communicator.h"

namespace dstrain::comm {

/// Makes the group of one rank: collectives copy `shard` to `whole` or leave the values unchanged.
/// It needs no peer and no store.
std::unique_ptr<Communicator> make_self_communicator();

}  // namespace dstrain::comm
