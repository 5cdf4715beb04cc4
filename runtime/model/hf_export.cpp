#include "runtime/model/hf_export.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/file.h"

namespace dstrain::model {
namespace {

std::filesystem::path created(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) fail_errno(error.value(), "create directory " + directory.string());
  return directory;
}

std::string file_name(const ParameterSpec& spec) {
  return "transformer." + spec.name;
}

/// In the order of their names, as Hugging Face's own files.
std::vector<safetensors::TensorInfo> tensors_of(std::span<const ParameterSpec> parameters,
                                                DType dtype) {
  std::vector<safetensors::TensorInfo> tensors;
  for (const ParameterSpec& spec : parameters)
    tensors.push_back({file_name(spec), dtype, spec.shape});
  std::ranges::sort(tensors, {}, &safetensors::TensorInfo::name);
  return tensors;
}

}  // namespace

HfExport::HfExport(const std::filesystem::path& directory,
                   std::string config_json,
                   std::span<const ParameterSpec> parameters,
                   DType dtype)
    : directory_(created(directory)),
      config_json_(std::move(config_json)),
      weights_(directory_ / "model.safetensors", tensors_of(parameters, dtype)) {}

void HfExport::write(const ParameterSpec& spec, TensorView values) {
  weights_.write(file_name(spec), values);
}

void HfExport::finish() {
  weights_.finish();
  write_text_file(directory_ / "config.json", config_json_);
}

}  // namespace dstrain::model
