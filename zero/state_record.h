#pragma once
#include <span>
#include <vector>

#include "offload/file_io.h"
#include "runtime/tensor/tensor_view.h"
#include "zero/shard_plan.h"

namespace dstrain::zero {

/// Selects contents of a record.
struct RecordContents {
  bool gradients = false;
  bool states = false;
};

/// The layout of a sub-group in a record of a swap file: the summed gradients, if they are kept
/// there, then the states, each padded to whole blocks of the file.
class StateRecord {
 public:
  explicit StateRecord(const SubGroup& sub_group);
  [[nodiscard]] Bytes bytes() const { return end_; }
  [[nodiscard]] Bytes gradient_bytes() const { return middle_; }
  /// Byte range within the record.
  [[nodiscard]] offload::FileRange range(RecordContents contents) const;
  [[nodiscard]] TensorView gradients(std::span<std::byte> record) const;
  void cut_states(std::span<std::byte> record, std::vector<TensorView>& states) const;

 private:
  SubGroup sub_group_;
  Bytes middle_;  ///< where the states begin
  Bytes end_;
};

}  // namespace dstrain::zero
