#include "zero/estimate.h"

#include "tests/support/catch.h"

namespace dstrain {
namespace {

/// What DeepSpeed 0.19.6 returns for 1000000007 parameters, 12345678 in the largest layer.
struct Known {
  int gpus_per_node, nodes, stage;
  std::size_t row;
  Bytes cpu, gpu;
};

TEST_CASE("Estimate: DeepSpeed's numbers to the byte", "[zero][estimate]") {
  const Known known = GENERATE(
      Known{1, 1, 2, 0, 24'000'000'168, 2'000'000'014},
      Known{1, 1, 2, 1, 6'000'000'042, 20'000'000'140},
      Known{8, 1, 2, 0, 48'000'000'336, 2'000'000'014},
      Known{8, 1, 2, 1, 48'000'000'336, 4'250'000'029},
      Known{8, 2, 2, 0, 96'000'000'672, 2'000'000'014},
      Known{8, 2, 2, 1, 48'000'000'336, 3'125'000'021},
      Known{8, 1, 3, 0, 27'000'000'189, 49'382'712}, Known{8, 1, 3, 1, 48'000'000'336, 49'382'712},
      Known{8, 2, 3, 2, 12'000'000'084, 174'382'712},
      Known{8, 2, 3, 3, 48'000'000'336, 174'382'712}, Known{8, 2, 3, 4, 592'592'544, 1'174'382'719},
      Known{8, 2, 3, 5, 48'000'000'336, 1'174'382'719});
  const zero::EstimateInput input{1'000'000'007, 12'345'678, known.gpus_per_node, known.nodes};
  CAPTURE(known.gpus_per_node, known.nodes, known.stage, known.row);
  const zero::Estimate row = zero::estimate(input, known.stage).at(known.row);
  CHECK(row.cpu_bytes == known.cpu);
  CHECK(row.gpu_bytes == known.gpu);
}

TEST_CASE("Estimate: the table for T0_3B on two GPUs", "[zero][estimate]") {
  CHECK(zero::estimate_table({2'783'959'040, 65'798'144, 2, 1}, 3) ==
        R"(Estimated memory needed for params, optim states and gradients for a:
HW: Setup with 1 node, 2 GPUs per node.
SW: Model with 2783M total params, 65M largest layer params.
  per CPU  |  per GPU |   Options
   70.00GB |   0.25GB | offload_param=cpu , offload_optimizer=cpu , zero_init=1
   70.00GB |   0.25GB | offload_param=cpu , offload_optimizer=cpu , zero_init=0
   62.23GB |   2.84GB | offload_param=none, offload_optimizer=cpu , zero_init=1
   62.23GB |   2.84GB | offload_param=none, offload_optimizer=cpu , zero_init=0
    0.74GB |  23.58GB | offload_param=none, offload_optimizer=none, zero_init=1
   31.11GB |  23.58GB | offload_param=none, offload_optimizer=none, zero_init=0
)");
}

TEST_CASE("Estimate: the table of stage 2", "[zero][estimate]") {
  CHECK(zero::estimate_table({2'851'000'000, 0, 8, 1}, 2) ==
        "Estimated memory needed for params, optim states and gradients for a:\n"
        "HW: Setup with 1 node, 8 GPUs per node.\n"
        "SW: Model with 2851M total params.\n"
        "  per CPU  |  per GPU |   Options\n"
        "  127.45GB |   5.31GB | offload_optimizer=cpu \n"
        "  127.45GB |  11.28GB | offload_optimizer=none\n");
}

TEST_CASE("Estimate: the largest layer is the module with most parameters of its own",
          "[zero][estimate]") {
  const std::vector<model::ParameterSpec> parameters{{"wte.weight", {50, 8}, {}},
                                                     {"h.0.mlp.c_fc.weight", {8, 49}, {}},
                                                     {"h.0.mlp.c_fc.bias", {49}, {}}};
  const zero::EstimateInput sizes = zero::sizes_for_estimate(parameters);
  CHECK(sizes.total_params == 400 + 392 + 49);
  CHECK(sizes.largest_layer_params == 392 + 49);
}

}  // namespace
}  // namespace dstrain
