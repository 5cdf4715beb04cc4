#include <array>

#include "runtime/config/schema.h"

namespace dstrain::config {
namespace {

using enum KeyType;

constexpr std::array offload_table{
    implemented("zero_optimization.cpu_offload", boolean, "null"),
    implemented("zero_optimization.cpu_offload_param", boolean, "null"),
    implemented("zero_optimization.cpu_offload_use_pin_memory", boolean, "null"),
    group("zero_optimization.offload_param", "null"),
    implemented("zero_optimization.offload_param.device", text, "none").one_of("none|cpu|nvme"),
    implemented("zero_optimization.offload_param.nvme_path", text, "null"),
    implemented("zero_optimization.offload_param.buffer_count", integer, "5").at_least(1),
    implemented("zero_optimization.offload_param.buffer_size", integer, "1e8").at_least(0),
    implemented("zero_optimization.offload_param.max_in_cpu", integer, "1e9").at_least(0),
    implemented("zero_optimization.offload_param.pin_memory", boolean, "true"),
    group("zero_optimization.offload_optimizer", "null"),
    implemented("zero_optimization.offload_optimizer.device", text, "none").one_of("none|cpu|nvme"),
    implemented("zero_optimization.offload_optimizer.nvme_path", text, "null"),
    implemented("zero_optimization.offload_optimizer.buffer_count", integer, "4").at_least(1),
    implemented("zero_optimization.offload_optimizer.pin_memory", boolean, "true"),
    implemented("zero_optimization.offload_optimizer.pipeline_read", boolean, "false"),
    implemented("zero_optimization.offload_optimizer.pipeline_write", boolean, "false"),
    hint("zero_optimization.offload_optimizer.fast_init",
         boolean,
         "false",
         "the first states are never read from the disk"),
    implemented("zero_optimization.offload_optimizer.ratio", number, "1.0").range(0, 1),
    implemented("zero_optimization.offload_optimizer.super_offload", boolean, "false"),
    hint("zero_optimization.offload_optimizer.cpuadam_cores_perc",
         number,
         "0.8",
         "the update runs on all threads of the rank")
        .range(0, 1),
};

}  // namespace

std::span<const Key> offload_keys() {
  return offload_table;
}

}  // namespace dstrain::config
