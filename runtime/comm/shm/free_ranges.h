#pragma once
#include <map>
#include <optional>

#include "runtime/base/units.h"

namespace dstrain::comm {

/// Which bytes of [0, end) are free. First fit, neighbours are joined. Not thread-safe.
class FreeRanges {
 public:
  explicit FreeRanges(Bytes end);

  /// Takes `bytes` bytes, more than 0, that start at a multiple of `alignment`, and returns their
  /// start; nothing when there is no room.
  std::optional<Bytes> take(Bytes bytes, Bytes alignment);
  /// Gives back what was taken.
  void give_back(Bytes begin, Bytes bytes);
  [[nodiscard]] Bytes free_bytes() const;

 private:
  std::map<Bytes, Bytes> ranges_;  ///< end by begin; disjoint, not touching
};

}  // namespace dstrain::comm
