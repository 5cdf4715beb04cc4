#include "runtime/checkpoint/export.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint_weights.h"
#include "runtime/model/families.h"
#include "runtime/model/hf_names.h"
#include "runtime/tensor/bfloat16.h"
#include "runtime/tensor/float16.h"

namespace dstrain::checkpoint {
namespace {

constexpr std::int64_t piece_numel = 4 * mebibyte / size_of(DType::f32);

std::vector<model::ParameterSpec> parameters_of(const Manifest& manifest) {
  std::vector<model::ParameterSpec> parameters;
  for (const TensorRecord& tensor : manifest.tensors) {
    parameters.push_back({tensor.name, tensor.shape, {}});
  }
  return parameters;
}

struct Format {
  std::uint16_t (*round)(float);
  std::uint16_t infinity;
};

Format format_of(DType dtype) {
  if (dtype == DType::f16) return {[](float value) { return to_float16(value).bits; }, 0x7C00};
  return {[](float value) { return to_bfloat16(value).bits; }, 0x7F80};
}

/// Reads a parameter piece by piece and converts it.
class PieceConverter {
 public:
  explicit PieceConverter(DType dtype) : dtype_(dtype) {}

  HostView read(const CheckpointState& source,
                const model::ParameterSpec& spec,
                std::int64_t begin) {
    const std::int64_t count = std::min(piece_numel, spec.shape.numel() - begin);
    values_.resize(static_cast<std::size_t>(count));
    source.read(spec, begin, values_);
    if (dtype_ == DType::f32) return {std::span(values_), {count}};
    round(spec, begin);
    return {rounded_.data(), dtype_, {count}};
  }

 private:
  void round(const model::ParameterSpec& spec, std::int64_t begin) {
    const auto [round, infinity] = format_of(dtype_);
    rounded_.resize(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      rounded_[i] = round(values_[i]);
      if ((rounded_[i] & 0x7FFFU) == infinity && std::isfinite(values_[i])) {
        fail(ErrorCode::input,
             "tensor '{}' holds {} (element {}), which is beyond {}; export it as fp32{}",
             spec.name, values_[i], begin + static_cast<std::int64_t>(i),
             model::torch_dtype_name(dtype_), dtype_ == DType::f16 ? " or bf16" : "");
      }
    }
  }

  DType dtype_;
  std::vector<float> values_;
  std::vector<std::uint16_t> rounded_;
};

}  // namespace

Exported export_checkpoint(const Checkpoint& checkpoint,
                           const std::filesystem::path& output,
                           model::HfExportOptions options) {
  std::vector<model::ParameterSpec> parameters = parameters_of(checkpoint.manifest());
  const CheckpointState source(checkpoint, weights_of(checkpoint).name, parameters);
  const std::vector<model::CompanionFile> companions = companions_of(checkpoint);
  options.companions = companions;
  const std::string config_json = checkpoint.read_text("config.json");
  if (!model::is_own_model(config_json)) {
    options.name_prefix =
        model::parse_model_config(config_json, (checkpoint.path() / "config.json").string())
            ->hf_names()
            .prefix;
  }
  model::HfExport target(output, config_json, parameters, options);
  Exported exported{0, target.files()};
  PieceConverter piece(options.dtype);
  for (const model::ParameterSpec& spec : parameters) {
    const std::int64_t numel = spec.shape.numel();
    for (std::int64_t begin = 0; begin < numel; begin += piece_numel) {
      target.write(spec, piece.read(source, spec, begin));
    }
    exported.parameters += numel;
  }
  target.finish();
  return exported;
}

}  // namespace dstrain::checkpoint
