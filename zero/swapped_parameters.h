#pragma once
#include <vector>

#include "offload/record_swap.h"
#include "runtime/tensor/tensor_view.h"
#include "zero/disk_place.h"
#include "zero/flat_layout.h"
#include "zero/offload.h"

namespace dstrain::zero {

/// The shards of parameters that lie on a disk, a segment's in one record. Thread-safe as
/// RecordSwap is.
class SwappedParameters {
 public:
  SwappedParameters(const FlatLayout& layout,
                    const Offload& offload,
                    const DiskPlace& place,
                    StreamView stream);
  static Bytes file_bytes(const FlatLayout& layout, const Offload& offload);
  static Bytes buffer_bytes(const FlatLayout& layout, const Offload& offload);

  /// Begins to read a shard, when a buffer is to spare.
  void expect(int segment);
  /// The buffer that the shard is being read into: wait() before use.
  [[nodiscard]] HostView take(int segment);
  void wait(int segment) { swap_.wait(segment); }
  /// A buffer for new values.
  [[nodiscard]] HostView replace(int segment);
  /// After take() or replace(). A shard that has changed is written.
  void release(int segment, bool changed);

 private:
  [[nodiscard]] offload::FileRange whole(int segment) const;
  [[nodiscard]] HostView view(int segment, std::span<std::byte> memory) const;

  const FlatLayout& layout_;
  offload::RecordSwap swap_;  ///< a record per segment
};

}  // namespace dstrain::zero
