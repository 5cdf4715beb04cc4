#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/shard_writer.h"
#include "runtime/engine/parameter_store.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::engine {

/// The states with the files of a rank that hold them.
std::vector<checkpoint::StateRecord> state_records(std::span<const SavedState> states);

/// A copy of what a rank saves, so that training may go on while it is written. Its size is that of
/// the rank's files.
class StagedShard {
 public:
  /// What ParameterStore says of the states and of this rank's slices.
  StagedShard(std::span<const SavedState> states, std::span<const ParameterSlice> slices);

  [[nodiscard]] Bytes bytes() const { return bytes_; }
  /// Takes the memory for the copy, which is kept, unless it has some. Throws what `memory` does.
  void reserve(MemoryResource& memory, StreamView stream);
  /// Copies the values as they are now into what was reserved. Returns the name of a tensor that
  /// holds a NaN or an infinity, if one does. Synchronises.
  std::optional<std::string> copy(ParameterStore& store);
  /// What goes into the files of this name ("optim_states"), as copied last.
  [[nodiscard]] std::vector<checkpoint::ShardTensor> tensors(std::string_view file) const;

 private:
  /// A state of a parameter: the rank's slices of it, one after another.
  struct Tensor {
    std::string name;
    std::string file;
    DType dtype = DType::f32;
    std::int64_t numel = 0;
    Bytes offset = 0;
  };
  struct SliceStart {
    std::size_t tensor = 0;  ///< index into tensors_
    std::int64_t begin = 0;  ///< first element in it
  };
  void add_tensor(const checkpoint::StateRecord& state, const std::string& parameter);
  [[nodiscard]] HostView view(const Tensor& tensor) const;

  std::vector<Tensor> tensors_;
  std::vector<std::vector<SliceStart>> slice_starts_;  ///< [state][slice]
  Bytes bytes_ = 0;
  HostBuffer memory_;
};

}  // namespace dstrain::engine
