#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/model/parameter.h"

namespace dstrain::zero {

// DeepSpeed's estimate of the memory that parameters, gradients and optimizer states take, by its
// formulas (deepspeed/runtime/zero/stage_1_and_2.py and stage3.py, estimate_zero*_model_states):
// fp16 parameters, Adam in fp32, and a half more CPU memory for buffers. What dstrain itself takes
// is planned exactly instead: see memory_plan.h.

struct EstimateInput {
  std::int64_t total_params = 0;
  std::int64_t largest_layer_params = 0;  ///< stage 3 gathers it whole
  int gpus_per_node = 1;
  int nodes = 1;
};

/// The memory that one combination of offloads takes.
struct Estimate {
  bool offload_param = false;  ///< stage 3 only
  bool offload_optimizer = false;
  bool zero_init = false;  ///< stage 3 only: the model is never whole in a process
  Bytes cpu_bytes = 0;     ///< per node
  Bytes gpu_bytes = 0;     ///< per GPU
};

/// All choices for stage 2 or 3, in DeepSpeed's order.
std::vector<Estimate> estimate(const EstimateInput& input, int stage);

/// DeepSpeed's table.
std::string estimate_table(const EstimateInput& input, int stage);

/// Sizes of a model as the formulas count them: the largest layer is the module (a parameter's name
/// up to its last dot) with the most parameters of its own.
EstimateInput sizes_for_estimate(std::span<const model::ParameterSpec> parameters);

}  // namespace dstrain::zero
