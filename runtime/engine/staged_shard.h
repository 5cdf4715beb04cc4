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

/// The states, each with the file of a rank that holds it.
std::vector<checkpoint::StateRecord> state_records(std::span<const SavedState> states);

/// A copy of the values that a rank saves, so that training can go on while they are written. It
/// has the size of the rank's files.
class StagedShard {
 public:
  /// `states` and `slices` are those of the ParameterStore and this rank.
  StagedShard(std::span<const SavedState> states, std::span<const ParameterSlice> slices);

  [[nodiscard]] Bytes bytes() const { return bytes_; }
  /// Allocates the memory for the copy, which is kept, unless it has some. Throws the failure of
  /// `memory`.
  void reserve(MemoryResource& memory, StreamView stream);
  /// Copies the current values into the reserved memory. Returns the name of a tensor that holds a
  /// NaN or an infinity, if there is one. Synchronizes.
  std::optional<std::string> copy(ParameterStore& store);
  /// The tensors of the files of this name ("optim_states"), as copied last.
  [[nodiscard]] std::vector<checkpoint::ShardTensor> tensors(std::string_view file) const;

 private:
  /// One state of a parameter: the rank's slices of it, one after another.
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
