#include "runtime/checkpoint/chunk_cache.h"

#include <algorithm>

namespace dstrain::checkpoint {
namespace {

constexpr std::size_t chunks_max = 16;

}  // namespace

ChunkCache::Chunk ChunkCache::get(Key key,
                                  std::size_t size,
                                  FunctionRef<void(std::span<std::byte>)> load) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find(chunks_, key, &std::pair<Key, Chunk>::first);
    if (found != chunks_.end()) {
      chunks_.splice(chunks_.begin(), chunks_, found);
      return found->second;
    }
  }
  // Not under the lock, so that threads read at the same time; two may load the same chunk.
  std::vector<std::byte> bytes(size);
  load(bytes);
  Chunk chunk = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::scoped_lock lock(mutex_);
  chunks_.emplace_front(key, chunk);
  if (chunks_.size() > chunks_max) chunks_.pop_back();
  return chunk;
}

}  // namespace dstrain::checkpoint
