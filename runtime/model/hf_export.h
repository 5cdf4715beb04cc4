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
  /// Limit for the tensors in one file. A larger model gets shards and an index; a larger tensor
  /// gets its own shard.
  Bytes shard_bytes_max = std::numeric_limits<Bytes>::max();
  std::span<const CompanionFile>
      companions{};                ///< written beside the weights; must outlive the export
  std::string_view name_prefix{};  ///< HfNames::prefix
};

/// Writes a model in the format of its class in Hugging Face's transformers: config.json and
/// model.safetensors, or shards and their index. Parameters stream through, piece by piece. Each
/// file appears whole or not at all, and existing files are untouched before finish().
///
/// An earlier model is replaced at one moment, at which all files of the new one are on disk: with
/// the rename of model.safetensors or of the index. If shards replace a model.safetensors, it is
/// the removal of that file, which readers prefer to an index. Until then new shards are beside
/// those of an earlier export; if names are taken, they get one digit more. A config.json with
/// different content is removed first, so that it is never beside the new weights. The companions
/// and the new config.json follow, and then the rest of an earlier export, or of one that was
/// killed, is removed.
class HfExport {
 public:
  /// Creates `directory` if it is missing. Throws Error{io}, also if the disk is too full or if
  /// another export writes to the same directory.
  HfExport(const std::filesystem::path& directory,
           std::string_view config_json,
           std::span<const ParameterSpec> parameters,
           HfExportOptions options);

  /// Appends the next elements of a parameter, row-major, in the given dtype. Parameters may come
  /// in any order.
  void write(const ParameterSpec& spec, HostView values);

  /// Call once, when every parameter is complete.
  void finish();

  /// The number of weight files: one, or the shards.
  [[nodiscard]] std::size_t files() const { return writers_.size(); }

 private:
  std::filesystem::path directory_;
  UniqueFd lock_;
  std::string name_prefix_;
  std::string config_json_;
  std::span<const CompanionFile> companions_;
  Bytes data_bytes_ = 0;
  ShardMap file_of_;  ///< the file of each tensor
  std::map<std::string, std::unique_ptr<safetensors::Writer>> writers_;  ///< by file
};

}  // namespace dstrain::model
