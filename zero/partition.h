#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/base/units.h"

namespace dstrain::zero {

/// Half-open range of elements [begin, end).
struct ElementRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] constexpr std::int64_t count() const { return end - begin; }
  friend constexpr bool operator==(const ElementRange&, const ElementRange&) = default;
};

/// Splits `numel` elements over `world` ranks in equal shards. A shard is rounded up to
/// `alignment`, so the last ranks may hold fewer elements, or only padding.
class Partition {
 public:
  struct Options {
    int world = 1;
    std::int64_t alignment = 1;
  };
  constexpr Partition(std::int64_t numel, Options options)
      : numel_(numel),
        world_(options.world),
        shard_(round_up((numel + options.world - 1) / options.world, options.alignment)) {}

  /// Elements of each rank's shard, padding included.
  [[nodiscard]] constexpr std::int64_t shard_numel() const { return shard_; }
  /// Elements of all shards together.
  [[nodiscard]] constexpr std::int64_t padded_numel() const { return shard_ * world_; }
  /// The elements that `rank` holds, without padding.
  [[nodiscard]] constexpr ElementRange range(int rank) const {
    return {std::min(shard_ * rank, numel_), std::min(shard_ * (rank + 1), numel_)};
  }

 private:
  std::int64_t numel_;
  std::int64_t world_;
  std::int64_t shard_;
};

}  // namespace dstrain::zero
