#pragma once
#include <span>
#include <string>
#include <string_view>

#include "runtime/config/schema_check.h"

namespace dstrain::config {

/// One of DeepSpeed's optimizers or schedulers, and its parameters.
struct NativeType {
  std::string_view name;  ///< DeepSpeed's spelling
  bool built = false;
  std::string_view params;         ///< "lr|betas|eps"
  std::string_view required = {};  ///< parameters without a default
};

std::span<const NativeType> optimizer_types();
std::span<const NativeType> scheduler_types();

/// Names in torch.optim and torch.optim.lr_scheduler that DeepSpeed accepts but dstrain does not.
std::span<const std::string_view> torch_optimizers();
std::span<const std::string_view> torch_schedulers();

/// Whether `section` (optimizer or scheduler) names a type of DeepSpeed or torch that dstrain
/// lacks, so that its parameters cannot be checked.
bool names_unbuilt_type(std::string_view section, const JsonValue& object);

/// Suggests what to write instead of `word` as the whole optimizer or scheduler section: "; write
/// ...".
std::string instead_of_type(std::string_view section, const std::string& word);

/// Checks optimizer and scheduler: the type is known and built, its parameters belong to it, and
/// betas have the right form.
void check_types(const CheckedValues& values, Problems& problems);

}  // namespace dstrain::config
