#include "cmd/bench/collectives.h"

#include <algorithm>
#include <array>

namespace dstrain::bench {
namespace {

enum Index : std::size_t {
  reduce_scatter,
  reduce_scatter_in_place,
  all_gather,
  all_gather_in_place,
  all_reduce
};

/// Every rank reads its part of every `whole` and writes the sum.
double reduce_scatter_traffic(double ranks) {
  return ranks + 1;
}
/// Every rank reads all shards and writes `whole`.
double all_gather_traffic(double ranks) {
  return 2 * ranks;
}
/// The same without its own shard.
double all_gather_in_place_traffic(double ranks) {
  return 2 * (ranks - 1);
}
/// One after the other, in place.
double all_reduce_traffic(double ranks) {
  return reduce_scatter_traffic(ranks) + all_gather_in_place_traffic(ranks);
}

}  // namespace

std::span<const Collective> all_collectives() {
  static constexpr std::array<Collective, 5> collectives{{
      {"reduce_scatter", reduce_scatter_traffic},
      {"reduce_scatter in place", reduce_scatter_traffic},
      {"all_gather", all_gather_traffic},
      {"all_gather in place", all_gather_in_place_traffic},
      {"all_reduce", all_reduce_traffic},
  }};
  return collectives;
}

CollectiveBuffers::CollectiveBuffers(comm::Communicator& communicator,
                                     MemoryResource& memory,
                                     Bytes bytes,
                                     StreamView stream)
    : communicator_(communicator),
      numel_(bytes / size_of(DType::f32)),
      whole_(bytes, memory, stream),
      shard_(bytes / communicator.size(), memory, stream) {
  // Zeros stay zeros however often they are summed.
  std::ranges::fill(whole_.bytes(), std::byte{0});
  std::ranges::fill(shard_.bytes(), std::byte{0});
}

void CollectiveBuffers::run(std::size_t collective, StreamView stream) const {
  const std::int64_t part = numel_ / communicator_.size();
  const TensorView whole = whole_.block().cut(0, DType::f32, {numel_});
  const TensorView shard = shard_.block().cut(0, DType::f32, {part});
  const TensorView own = whole.part(part * communicator_.rank(), {part});
  switch (collective) {
    case reduce_scatter:
      return communicator_.reduce_scatter(whole, shard, stream);
    case reduce_scatter_in_place:
      return communicator_.reduce_scatter(whole, own, stream);
    case all_gather:
      return communicator_.all_gather(shard, whole, stream);
    case all_gather_in_place:
      return communicator_.all_gather(own, whole, stream);
    case all_reduce:
      return communicator_.all_reduce(whole, stream);
    default:
      DSTRAIN_CHECK(false, "collective {}", collective);
  }
}

}  // namespace dstrain::bench
