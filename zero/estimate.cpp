#include "zero/estimate.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "runtime/base/units.h"

namespace dstrain::zero {
namespace {

constexpr double buffer_factor = 1.5;

/// Counts in the types of the formulas: Python's integers and floats.
struct Counts {
  explicit Counts(const EstimateInput& input)
      : params(static_cast<double>(input.total_params)),
        largest_layer(static_cast<double>(input.largest_layer_params)),
        gpus_per_node(input.gpus_per_node),
        gpus(static_cast<double>(input.gpus_per_node) * input.nodes),
        node_share(1.0 / input.nodes) {}
  double params;
  double largest_layer;
  double gpus_per_node;
  double gpus;
  double node_share;
};

Bytes whole(double bytes) {
  return static_cast<Bytes>(bytes);
}

Estimate stage_2(const Counts& c, bool offload) {
  Estimate row{.offload_optimizer = offload};
  if (offload) {
    row.gpu_bytes = whole(2 * c.params);
    row.cpu_bytes = whole(c.params * std::max(4 * c.gpus, 16.0) * buffer_factor);
  } else {
    row.gpu_bytes = whole(2 * c.params) + whole(18 * c.params / c.gpus);
    row.cpu_bytes = whole(c.params * 4 * c.gpus_per_node * buffer_factor);
  }
  return row;
}

/// Bytes of optimizer states and gradients on the CPUs, with or without the fp16 parameters.
Bytes stage_3_cpu(const Counts& c, double bytes_per_param, bool zero_init) {
  const double whole_model = 4 * c.gpus_per_node;
  const double share = bytes_per_param * c.node_share;
  if (zero_init) return whole(c.params * bytes_per_param * c.node_share * buffer_factor);
  return whole(c.params * std::max(whole_model, share) * buffer_factor);
}

Estimate stage_3(const Counts& c, bool offload_param, bool offload_optimizer, bool zero_init) {
  Estimate row{offload_param, offload_optimizer, zero_init, 0, whole(4 * c.largest_layer)};
  if (offload_param) {
    row.cpu_bytes = stage_3_cpu(c, 18, zero_init);
  } else if (offload_optimizer) {
    row.gpu_bytes += whole(2 * c.params / c.gpus);
    row.cpu_bytes = stage_3_cpu(c, 16, zero_init);
  } else {
    row.gpu_bytes += whole(18 * c.params / c.gpus);
    const double built = zero_init ? c.largest_layer : c.params;
    row.cpu_bytes = whole(built * 4 * c.gpus_per_node * buffer_factor);
  }
  return row;
}

}  // namespace

std::vector<Estimate> estimate(const EstimateInput& input, int stage) {
  const Counts c(input);
  if (stage == 2) return {stage_2(c, true), stage_2(c, false)};
  std::vector<Estimate> rows;
  for (const auto& [param, optimizer] : {std::pair{true, true}, {false, true}, {false, false}}) {
    for (const bool zero_init : {true, false}) {
      rows.push_back(stage_3(c, param, optimizer, zero_init));
    }
  }
  return rows;
}

std::string estimate_table(const EstimateInput& input, int stage) {
  constexpr std::int64_t million = 1'000'000;
  const auto device = [](bool offload) {
    return offload ? "cpu " : "none";
  };
  const auto gib = [](Bytes bytes) {
    return static_cast<double>(bytes) / static_cast<double>(gibibyte);
  };
  std::string text = fmt::format(
      "Estimated memory needed for params, optim states and gradients for a:\n"
      "HW: Setup with {}, {} per node.\nSW: Model with {}M total params",
      counted(input.nodes, "node"), counted(input.gpus_per_node, "GPU"),
      input.total_params / million);
  text += stage == 3
              ? fmt::format(", {}M largest layer params.\n", input.largest_layer_params / million)
              : ".\n";
  text += "  per CPU  |  per GPU |   Options\n";
  for (const Estimate& row : estimate(input, stage)) {
    text += fmt::format(" {:7.2f}GB | {:6.2f}GB | ", gib(row.cpu_bytes), gib(row.gpu_bytes));
    if (stage == 3) text += fmt::format("offload_param={}, ", device(row.offload_param));
    text += fmt::format("offload_optimizer={}", device(row.offload_optimizer));
    text += stage == 3 ? fmt::format(", zero_init={:d}\n", row.zero_init) : "\n";
  }
  return text;
}

EstimateInput sizes_for_estimate(std::span<const model::ParameterSpec> parameters) {
  EstimateInput input;
  std::map<std::string, std::int64_t> layers;
  for (const model::ParameterSpec& parameter : parameters) {
    const std::int64_t numel = parameter.shape.numel();
    input.total_params += numel;
    std::int64_t& layer = layers[parameter.name.substr(0, parameter.name.rfind('.'))];
    layer += numel;
    input.largest_layer_params = std::max(input.largest_layer_params, layer);
  }
  return input;
}

}  // namespace dstrain::zero
