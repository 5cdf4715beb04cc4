#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/ranges.h>

#include "runtime/base/error.h"
#include "runtime/base/function_ref.h"
#include "runtime/base/number.h"
#include "runtime/base/printable.h"
#include "runtime/config/resolve.h"

namespace dstrain::config {
namespace {

/// Returns the variable's value; empty if it is not set or asks for nothing.
std::string asked_by(const char* variable) {
  const char* const given = std::getenv(variable);
  const std::string value = given == nullptr ? "" : given;
  return value == "no" || value == "none" || value == "None" || value == "auto" ? "" : value;
}

std::string_view name_of(OffloadSettings::Device device) {
  if (device == OffloadSettings::Device::none) return "";
  return device == OffloadSettings::Device::cpu ? "cpu" : "nvme";
}

/// Adds "ACCELERATE_MIXED_PRECISION=bf16 (--bf16)" unless the settings already do what the variable
/// asks (`met`). `instead` has {} for the value.
void collect(std::vector<std::string>& unmet,
             const char* variable,
             std::string_view instead,
             FunctionRef<bool(const std::string&)> met) {
  const std::string value = asked_by(variable);
  if (value.empty() || met(value)) return;
  const std::string typed = fmt::format(fmt::runtime(instead), value);
  unmet.push_back(printable(fmt::format("{}={} ({})", variable, value, typed)));
}

}  // namespace

void check_accelerate_environment(const TrainSettings& settings, bool has_configuration) {
  const ZeroSettings& zero = settings.zero;
  std::vector<std::string> unmet;
  const bool fp8 = asked_by("ACCELERATE_MIXED_PRECISION") == "fp8";
  collect(unmet, "ACCELERATE_MIXED_PRECISION", fp8 ? "not implemented; use --bf16" : "--{}",
          [&](const std::string& value) { return value == precision_name(settings.dtype); });
  collect(unmet, "ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "--gradient_accumulation_steps {}",
          [&](const std::string& value) {
            const bool by_default =
                value == "1" && settings.batch_origins.accumulation == "derived";
            return by_default || parse_number<std::int64_t>(value) == settings.accumulation_steps;
          });
  collect(unmet, "ACCELERATE_GRADIENT_CLIPPING", "--max_grad_norm {}",
          [&](const std::string& value) {
            return parse_number<double>(value) == settings.gradient_clipping;
          });
  collect(unmet, "ACCELERATE_DEEPSPEED_CONFIG_FILE", "--deepspeed {}",
          [&](const std::string& /*value*/) { return has_configuration; });
  collect(unmet, "ACCELERATE_DEEPSPEED_ZERO_STAGE", "--zero_stage {}",
          [&](const std::string& value) { return parse_number<int>(value) == zero.stage; });
  collect(
      unmet, "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE",
      "zero_optimization.offload_optimizer.device {} in the --deepspeed file",
      [&](const std::string& value) { return value == name_of(zero.offload_optimizer.device); });
  collect(unmet, "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE",
          "zero_optimization.offload_param.device {} in the --deepspeed file",
          [&](const std::string& value) { return value == name_of(zero.offload_param.device); });
  collect(unmet, "ACCELERATE_USE_FSDP", "full sharding is --zero_stage 3",
          [&](const std::string& value) { return value != "true" || zero.stage == 3; });
  if (unmet.empty()) return;
  fail(ErrorCode::config,
       "accelerate's variables are not read here, and ask for something else than the options do: "
       "{}; type that, or unset them",
       fmt::join(unmet, ", "));
}

}  // namespace dstrain::config
