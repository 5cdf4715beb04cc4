#pragma once
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/function_ref.h"

namespace dstrain::checkpoint {

/// The last few chunks of which only a part was wanted: the end of one tensor lies in the chunk
/// that the next one begins in. At most 16 MiB. Safe from several threads.
class ChunkCache {
 public:
  using Chunk = std::shared_ptr<const std::vector<std::byte>>;
  /// A file's number and a chunk's.
  using Key = std::pair<std::size_t, std::size_t>;

  /// The chunk, of `size` bytes; `load` fills it when it is not here.
  Chunk get(Key key, std::size_t size, FunctionRef<void(std::span<std::byte>)> load);

 private:
  std::mutex mutex_;
  std::list<std::pair<Key, Chunk>> chunks_;  ///< the last used first
};

}  // namespace dstrain::checkpoint
