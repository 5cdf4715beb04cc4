#pragma once
#include <map>
#include <optional>

#include "runtime/base/units.h"

namespace dstrain::comm {

/// The free bytes of [0, end). First fit; adjacent ranges are joined. Not thread-safe.
class FreeRanges {
 public:
  explicit FreeRanges(Bytes end);

  /// Takes `bytes` bytes, more than 0, at a multiple of `alignment`, and returns their start;
  /// nothing if there is no room.
  std::optional<Bytes> take(Bytes bytes, Bytes alignment);
  /// Returns a range from take().
  void give_back(Bytes begin, Bytes bytes);
  [[nodiscard]] Bytes free_bytes() const;

 private:
  std::map<Bytes, Bytes> ranges_;  ///< end by begin; disjoint, not adjacent
};

}  // namespace dstrain::comm
