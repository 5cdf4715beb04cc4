#pragma once
#include <memory>

#include "runtime/comm/communicator.h"

namespace dstrain::comm {

/// The group of one rank: collectives copy `shard` to `whole` or leave the values as they are. It
/// needs no peer and no store.
std::unique_ptr<Communicator> make_self_communicator();

}  // namespace dstrain::comm
