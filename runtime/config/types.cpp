#include "runtime/config/types.h"

#include <array>

#include "runtime/config/schedule_settings.h"

namespace dstrain::config {
namespace {

constexpr std::string_view adam_params =
    "lr|betas|eps|weight_decay|bias_correction|adam_w_mode|torch_adam|amsgrad|set_grad_none|"
    "fp32_optimizer_states";

constexpr std::array optimizers{
    NativeType{"Adam", true, adam_params},
    NativeType{"AdamW", true, adam_params},
    NativeType{"Lamb", false, "lr|betas|eps|eps_inside_sqrt|weight_decay|max_coeff|min_coeff"},
    NativeType{"OneBitAdam", false,
               "lr|betas|eps|weight_decay|freeze_step|cuda_aware|comm_backend_name"},
    NativeType{"OneBitLamb", false,
               "lr|betas|eps|weight_decay|freeze_step|max_coeff|min_coeff|coeff_beta|factor_max|"
               "factor_min|factor_threshold|cuda_aware|comm_backend_name"},
    NativeType{"ZeroOneAdam", false,
               "lr|betas|eps|weight_decay|var_freeze_step|var_update_scaler|local_step_scaler|"
               "local_step_clipper|cuda_aware|comm_backend_name"},
    NativeType{"Adagrad", false, "lr|eps|weight_decay"},
    NativeType{"Lion", false, "lr|betas|weight_decay"},
    NativeType{"Muon", false, "lr|momentum|ns_method|muon_lr|adam_lr|weight_decay|betas|eps"},
    NativeType{"MuAdam", false, "lr|betas|eps|weight_decay"},
    NativeType{"MuAdamW", false, "lr|betas|eps|weight_decay"},
    NativeType{"MuSGD", false, "lr|momentum|weight_decay"},
};

constexpr std::array schedulers{
    NativeType{WarmupLr::name, true,
               "warmup_min_lr|warmup_max_lr|warmup_num_steps|warmup_type|last_batch_iteration"},
    NativeType{WarmupDecayLr::name, true,
               "warmup_min_lr|warmup_max_lr|warmup_num_steps|warmup_type|total_num_steps|"
               "last_batch_iteration",
               "total_num_steps"},
    NativeType{WarmupCosineLr::name, true,
               "warmup_num_steps|warmup_type|total_num_steps|warmup_min_ratio|cos_min_ratio|"
               "last_batch_iteration",
               "total_num_steps"},
    NativeType{LrRangeTest::name, true,
               "lr_range_test_min_lr|lr_range_test_step_size|lr_range_test_step_rate|"
               "lr_range_test_staircase|last_batch_iteration"},
    NativeType{OneCycle::name, true,
               "cycle_min_lr|cycle_max_lr|decay_lr_rate|cycle_first_step_size|"
               "cycle_second_step_size|cycle_first_stair_count|cycle_second_stair_count|"
               "decay_step_size|cycle_momentum|cycle_min_mom|cycle_max_mom|decay_mom_rate|"
               "last_batch_iteration",
               "cycle_min_lr|cycle_max_lr"},
};

constexpr std::array<std::string_view, 12> torch_optimizer_names{
    "SGD",  "RMSprop", "Adadelta",   "Adamax", "NAdam",     "RAdam",
    "ASGD", "LBFGS",   "SparseAdam", "Rprop",  "Adafactor", "Adagrad"};

constexpr std::array<std::string_view, 11> torch_scheduler_names{
    "StepLR",   "MultiStepLR", "ExponentialLR", "CosineAnnealingLR",
    "LambdaLR", "ConstantLR",  "LinearLR",      "ReduceLROnPlateau",
    "CyclicLR", "OneCycleLR",  "PolynomialLR"};

}  // namespace

std::span<const NativeType> optimizer_types() {
  return optimizers;
}
std::span<const NativeType> scheduler_types() {
  return schedulers;
}
std::span<const std::string_view> torch_optimizers() {
  return torch_optimizer_names;
}
std::span<const std::string_view> torch_schedulers() {
  return torch_scheduler_names;
}

}  // namespace dstrain::config
