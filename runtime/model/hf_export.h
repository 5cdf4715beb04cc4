#pragma once
#include <filesystem>
#include <span>
#include <string>

#include "runtime/model/parameter.h"
#include "runtime/safetensors/writer.h"

namespace dstrain::model {

/// Writes a model as Hugging Face's GPT2LMHeadModel saves it: config.json and model.safetensors
/// with f32 or bf16 tensors under "transformer.". Parameters stream through, piece by piece. Each
/// of the two files appears whole or not at all; before finish() what lay there is untouched.
class HfExport {
 public:
  /// Creates `directory` when it is missing. Throws Error{io}; a full disk is found here.
  HfExport(const std::filesystem::path& directory,
           std::string config_json,
           std::span<const ParameterSpec> parameters,
           DType dtype);

  /// Appends the next elements of a parameter, row-major, in that dtype; parameters may come in any
  /// order.
  void write(const ParameterSpec& spec, TensorView values);

  /// Call once, when every parameter is complete.
  void finish();

 private:
  std::filesystem::path directory_;
  std::string config_json_;
  safetensors::Writer weights_;
};

}  // namespace dstrain::model
