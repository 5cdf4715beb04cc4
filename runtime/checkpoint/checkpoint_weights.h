#pragma once
#include <filesystem>
#include <span>
#include <vector>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/model/hf_companions.h"
#include "runtime/tensor/dtype.h"

namespace dstrain::checkpoint {

/// Returns the state with the weights of the model: the fp32 weights or, if there are none, those
/// that the model computed with. Throws Error{input} if there are neither.
const StateRecord& weights_of(const Checkpoint& checkpoint);

/// Returns the companion files of the model, each checked against its checksums. Throws
/// Error{input}.
std::vector<model::CompanionFile> companions_of(const Checkpoint& checkpoint);

/// The weights of a checkpoint as a source of parameters. Any range can be read; each chunk is
/// checked against its checksum.
class CheckpointWeights final : public model::ParameterSource {
 public:
  /// Throws Error{input} as Checkpoint and CheckpointState.
  CheckpointWeights(std::filesystem::path directory,
                    std::span<const model::ParameterSpec> parameters);

  /// The dtype in which the weights are stored.
  [[nodiscard]] DType dtype() const { return weights_of(checkpoint_).dtype; }
  /// Throws Error{input} for a NaN or an infinity, with its file, parameter and index.
  void read(const model::ParameterSpec& spec,
            std::int64_t begin,
            std::span<float> values) const override;

 private:
  Checkpoint checkpoint_;
  CheckpointState state_;  ///< state of checkpoint_
};

}  // namespace dstrain::checkpoint
