#pragma once
#include <filesystem>
#include <span>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/model/hf_companions.h"
#include "runtime/tensor/dtype.h"

namespace dstrain::checkpoint {

/// The state that a model is made from: the fp32 weights, or, where there are none, those that the
/// model computed with. Throws Error{input} when there are neither.
const StateRecord& weights_of(const Checkpoint& checkpoint);

/// What goes wherever the model goes, each file against its checksums. Throws Error{input}.
std::vector<model::CompanionFile> companions_of(const Checkpoint& checkpoint);

/// The weights of a checkpoint, without the rest of it, as a source of parameters: any range, each
/// chunk that is read against its checksum.
class CheckpointWeights final : public model::ParameterSource {
 public:
  /// Throws Error{input} as Checkpoint and CheckpointState.
  CheckpointWeights(std::filesystem::path directory,
                    std::span<const model::ParameterSpec> parameters);

  /// In which they are stored.
  [[nodiscard]] DType dtype() const { return weights_of(checkpoint_).dtype; }
  /// Throws Error{input} for a NaN or an infinity, with its file, parameter and index.
  void read(const model::ParameterSpec& spec,
            std::int64_t begin,
            std::span<float> values) const override;

 private:
  Checkpoint checkpoint_;
  CheckpointState state_;  ///< of checkpoint_
};

}  // namespace dstrain::checkpoint
