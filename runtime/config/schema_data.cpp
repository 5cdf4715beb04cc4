#include <array>

#include "runtime/config/schema.h"

namespace dstrain::config {
namespace {

using enum KeyType;

constexpr std::array data_table{
    group("data_efficiency"),
    off_only("data_efficiency.enabled", boolean, "false", "data efficiency"),
    inert("data_efficiency.seed", integer, "1234"),
    inert("data_efficiency.data_sampling", section, ""),
    inert("data_efficiency.data_sampling.enabled", boolean, "false"),
    inert("data_efficiency.data_sampling.num_epochs", integer, "1000"),
    inert("data_efficiency.data_sampling.num_workers", integer, "0"),
    inert("data_efficiency.data_sampling.pin_memory", boolean, "false"),
    inert("data_efficiency.data_sampling.curriculum_learning", any, ""),
    inert("data_efficiency.data_sampling.dynamic_batching", section, "").or_more(),
    inert("data_efficiency.data_sampling.dynamic_batching.enabled", boolean, "false"),
    inert("data_efficiency.data_sampling.dynamic_batching.lr_scaling_method", text, "linear")
        .one_of("linear|sqrt|none"),
    inert("data_efficiency.data_sampling.dynamic_batching.min_batch_size", integer, "1"),
    inert("data_efficiency.data_sampling.dynamic_batching.max_batch_size", integer, "null"),
    inert(
        "data_efficiency.data_sampling.dynamic_batching.sequence_picking_order", text, "dataloader")
        .one_of("random|seqlen|dataloader"),
    inert("data_efficiency.data_sampling.dynamic_batching.metrics_path", text, ""),
    inert("data_efficiency.data_sampling.dynamic_batching.max_tokens", integer, ""),
    inert("data_efficiency.data_sampling.dynamic_batching.verbose", boolean, "false"),
    inert("data_efficiency.data_routing", section, ""),
    inert("data_efficiency.data_routing.enabled", boolean, "false"),
    inert("data_efficiency.data_routing.random_ltd", any, ""),
    group("curriculum_learning"),
    off_only("curriculum_learning.enabled", boolean, "false", "curriculum learning"),
    inert("curriculum_learning.curriculum_type", text, "seqlen"),
    inert("curriculum_learning.min_difficulty", integer, ""),
    inert("curriculum_learning.max_difficulty", integer, ""),
    inert("curriculum_learning.schedule_type", text, "fixed_linear")
        .one_of("fixed_linear|fixed_root|fixed_discrete|custom"),
    inert("curriculum_learning.schedule_config", any, ""),
    group("progressive_layer_drop"),
    off_only("progressive_layer_drop.enabled", boolean, "false", "progressive layer drop"),
    inert("progressive_layer_drop.theta", number, "1.0"),
    inert("progressive_layer_drop.gamma", number, "0.001"),
};

}  // namespace

std::span<const Key> data_keys() {
  return data_table;
}

}  // namespace dstrain::config
