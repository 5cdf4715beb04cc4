#pragma once
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/unique_handle.h"
#include "runtime/model/hf_companions.h"
#include "runtime/model/hf_index.h"
#include "runtime/model/parameter.h"
#include "runtime/safetensors/writer.h"

namespace dstrain::model {

struct HfExportOptions {
  DType dtype = DType::f32;  ///< f32, bf16 or f16
  /// Of the tensors in one file. A model that takes more gets shards and an index; a tensor that
  /// takes more has a shard for itself.
  Bytes shard_bytes_max = std::numeric_limits<Bytes>::max();
  std::span<const CompanionFile>
      companions{};                ///< written beside them; they must outlive the export
  std::string_view name_prefix{};  ///< HfNames::prefix
};

/// Writes a model as its class of Hugging Face's transformers saves it: config.json and
/// model.safetensors, or shards and their index. Parameters stream through, piece by piece. Each
/// file appears whole or not at all, and before finish() what lay there is untouched.
///
/// A model that lay there before is replaced at one moment, at which all files of the new one are
/// on disk: with the rename of model.safetensors or of the index, or, where a model.safetensors
/// makes way for shards, with its removal, as readers prefer it to an index. So that shards lie
/// beside those of an earlier export until then, they get one digit more where names are taken.
/// A config.json of another content goes before, so that it never lies beside the new weights; the
/// companions and the new one follow, and what is left of the earlier export, or of one that was
/// killed, goes.
class HfExport {
 public:
  /// Creates `directory` when it is missing. Throws Error{io}; a full disk is found here, and
  /// another export that writes to the same directory.
  HfExport(const std::filesystem::path& directory,
           std::string_view config_json,
           std::span<const ParameterSpec> parameters,
           HfExportOptions options);

  /// Appends the next elements of a parameter, row-major, in that dtype; parameters may come in any
  /// order.
  void write(const ParameterSpec& spec, HostView values);

  /// Call once, when every parameter is complete.
  void finish();

  /// Of the weights: one, or the shards.
  [[nodiscard]] std::size_t files() const { return writers_.size(); }

 private:
  std::filesystem::path directory_;
  UniqueFd lock_;
  std::string name_prefix_;
  std::string config_json_;
  std::span<const CompanionFile> companions_;
  Bytes data_bytes_ = 0;
  ShardMap file_of_;                                                     ///< of each tensor
  std::map<std::string, std::unique_ptr<safetensors::Writer>> writers_;  ///< by file
};

}  // namespace dstrain::model
