#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/model/hf_names.h"
#include "runtime/model/parameter_source.h"
#include "runtime/safetensors/file.h"
#include "runtime/tensor/dtype.h"

namespace dstrain::model {

/// Parameters from a Hugging Face directory (see hf_directory.h), read range by range: no tensor is
/// ever completely in memory. Names may lack the prefix of the class with a head; buffers are
/// ignored. A tied tensor must equal the parameter that it is tied to.
class HfWeights final : public ParameterSource {
 public:
  /// Checks that the files hold exactly `parameters`, in the right shapes and in a float dtype.
  /// Throws Error{input} that lists the missing, unknown and different ones.
  HfWeights(const std::string& directory,
            std::span<const ParameterSpec> parameters,
            const HfNames& names);

  /// Returns bf16 or f16 if all parameters have that dtype, else f32: the smaller type that loses
  /// nothing.
  [[nodiscard]] DType dtype() const;
  /// Reads only the range, also of tensors that are tied to the parameter. Throws Error{input} if
  /// they differ, or for a NaN or an infinity, with its file, tensor and index.
  void read(const ParameterSpec& spec, std::int64_t begin, std::span<float> values) const override;

 private:
  struct TensorIndex {
    std::size_t file = 0;
    std::size_t entry = 0;
  };

  [[nodiscard]] const safetensors::Entry& entry(TensorIndex index) const {
    return files_[index.file].entries()[index.entry];
  }

  void find_tensors(const std::unordered_set<std::string_view>& wanted,
                    std::vector<std::string>& problems);
  void check_stored(const std::string& name,
                    const Shape& shape,
                    std::vector<std::string>& problems) const;
  [[nodiscard]] std::string_view without_prefix(std::string_view name) const;
  /// Returns the names of the tensors in the files that are tied to the parameter.
  [[nodiscard]] std::vector<std::string> tied_to(const ParameterSpec& spec) const;
  void check_tied(const HfNames::Tied& tied,
                  std::int64_t begin,
                  std::span<const float> expected) const;

  std::string directory_;
  HfNames names_;
  std::vector<safetensors::File> files_;
  std::unordered_map<std::string, TensorIndex> tensors_;  ///< by name without prefix
};

}  // namespace dstrain::model
