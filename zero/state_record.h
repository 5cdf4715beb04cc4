#pragma once
#include <span>
#include <vector>

#include "offload/file_io.h"
#include "runtime/tensor/tensor_view.h"
#include "zero/shard_plan.h"

namespace dstrain::zero {

/// Which parts of a record are meant.
struct RecordContents {
  bool gradients = false;
  bool states = false;
};

/// How a sub-group lies in a record of a swap file: the summed gradients, if they have a place,
/// then the states, each part in whole pieces of the file.
class StateRecord {
 public:
  explicit StateRecord(const SubGroup& sub_group);
  [[nodiscard]] Bytes bytes() const { return end_; }
  [[nodiscard]] Bytes gradient_bytes() const { return middle_; }
  /// In bytes of the record.
  [[nodiscard]] offload::FileRange range(RecordContents contents) const;
  [[nodiscard]] TensorView gradients(std::span<std::byte> record) const;
  void cut_states(std::span<std::byte> record, std::vector<TensorView>& states) const;

 private:
  SubGroup sub_group_;
  Bytes middle_;  ///< where the states begin
  Bytes end_;
};

}  // namespace dstrain::zero
