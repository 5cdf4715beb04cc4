#include "runtime/checkpoint/checksum.h"

#include <algorithm>

#include <xxhash.h>

#include <fmt/format.h>

#include "runtime/base/error.h"

namespace dstrain::checkpoint {

std::string to_text(Checksum checksum) {
  return fmt::format("{:016x}", checksum);
}

struct ChunkHasher::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> hash{XXH3_createState()};
  std::size_t in_chunk = 0;  ///< bytes of the chunk that `hash` has seen
  std::vector<Checksum> finished;

  void end_chunk() {
    finished.push_back(XXH3_64bits_digest(hash.get()));
    XXH3_64bits_reset(hash.get());
    in_chunk = 0;
  }
};

ChunkHasher::ChunkHasher() : state_(std::make_unique<State>()) {
  DSTRAIN_CHECK(state_->hash != nullptr, "no memory");
  XXH3_64bits_reset(state_->hash.get());
}

ChunkHasher::ChunkHasher(ChunkHasher&&) noexcept = default;
ChunkHasher& ChunkHasher::operator=(ChunkHasher&&) noexcept = default;
ChunkHasher::~ChunkHasher() = default;

void ChunkHasher::add(std::span<const std::byte> bytes) {
  constexpr auto chunk = static_cast<std::size_t>(chunk_bytes);
  while (!bytes.empty()) {
    const std::size_t size = std::min(bytes.size(), chunk - state_->in_chunk);
    if (size == chunk) {  // a whole chunk at once is faster
      state_->finished.push_back(checksum_of(bytes.first(chunk)));
    } else {
      XXH3_64bits_update(state_->hash.get(), bytes.data(), size);
      state_->in_chunk += size;
      if (state_->in_chunk == chunk) state_->end_chunk();
    }
    bytes = bytes.subspan(size);
  }
}

std::vector<Checksum> ChunkHasher::finish() {
  if (state_->in_chunk > 0) state_->end_chunk();
  return std::move(state_->finished);
}

}  // namespace dstrain::checkpoint
