#pragma once
#include <span>
#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::bench {

/// A collective as it is timed, over n bytes of `whole` and N ranks.
struct Collective {
  const char* name;
  /// Bytes that all ranks together must at least read and write, as a multiple of n; two ranks that
  /// copy n bytes move 2 n.
  double (*traffic)(double ranks);
};

std::span<const Collective> all_collectives();

/// What the ranks use for it: tensors of one size in one kind of memory.
class CollectiveBuffers {
 public:
  CollectiveBuffers(comm::Communicator& communicator,
                    MemoryResource& memory,
                    Bytes bytes,
                    StreamView stream);

  /// Runs one of all_collectives(), by index.
  void run(std::size_t collective, StreamView stream) const;

 private:
  comm::Communicator& communicator_;
  std::int64_t numel_;
  HostBuffer whole_;
  HostBuffer shard_;
};

}  // namespace dstrain::bench
