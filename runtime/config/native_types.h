#pragma once
#include <span>
#include <string>
#include <string_view>

#include "runtime/config/schema_check.h"

namespace dstrain::config {

/// One of DeepSpeed's optimizers or schedulers, and its parameters.
struct NativeType {
  std::string_view name;  ///< as DeepSpeed writes it
  bool built = false;
  std::string_view params;         ///< "lr|betas|eps"
  std::string_view required = {};  ///< those without a default
};

std::span<const NativeType> optimizer_types();
std::span<const NativeType> scheduler_types();

/// Names of torch.optim and torch.optim.lr_scheduler, which DeepSpeed takes too and dstrain does
/// not.
std::span<const std::string_view> torch_optimizers();
std::span<const std::string_view> torch_schedulers();

/// Whether `section`, optimizer or scheduler, names a type that DeepSpeed or torch has and dstrain
/// has not, so that nothing can be said of its parameters.
bool names_unbuilt_type(std::string_view section, const JsonValue& object);

/// What to write where `word` stands in place of the section, optimizer or scheduler, "; write
/// ...".
std::string instead_of_type(std::string_view section, const std::string& word);

/// Checks optimizer and scheduler: the type is known and built, its parameters belong to it, and
/// those with a shape of their own (betas) are right.
void check_types(const CheckedValues& values, Problems& problems);

}  // namespace dstrain::config
