#include <array>

#include "runtime/config/schema.h"

namespace dstrain::config {
namespace {

using enum KeyType;

constexpr std::array precision_table{
    group("fp16"),
    implemented("fp16.enabled", boolean, "false").or_auto(),
    hint("fp16.auto_cast", boolean, "false", "a model's inputs are tokens").silent_at("false"),
    implemented("fp16.loss_scale", number, "0").at_least(0),
    implemented("fp16.initial_scale_power", integer, "16").range(0, 100),
    implemented("fp16.loss_scale_window", integer, "1000"),
    implemented("fp16.hysteresis", integer, "2"),
    implemented("fp16.consecutive_hysteresis", boolean, "false"),
    implemented("fp16.min_loss_scale", number, "1"),
    implemented("fp16.fp16_master_weights_and_grads", boolean, "false"),
    refused(
        "fp16.type",
        "not a key of DeepSpeed; for bfloat16 write \"bf16\": {\"enabled\": true} in place of the "
        "section fp16, for fp16 leave it out"),
    group("bf16"),
    implemented("bf16.enabled", boolean, "false").or_auto(),
    hint("bf16.immediate_grad_update",
         boolean,
         "false",
         "gradients are accumulated as they are computed"),
    off_only("bf16.check_grad_overflow", boolean, "true", "taking steps that are not finite"),
    implemented("bf16.bf16_master_weights_and_grads", boolean, "false"),
    implemented("bf16.bf16_optimizer_states", boolean, "false"),
    group("amp").or_more(),
    off_only("amp.enabled", boolean, "false", "apex's automatic mixed precision (use fp16.enabled)")
        .or_auto(),
    inert("amp.opt_level", text, "O1").or_auto(),
    group("torch_autocast"),
    implemented("torch_autocast.enabled", boolean, "false"),
    implemented("torch_autocast.dtype", text, "")
        .one_of("bfloat16|float16")
        .synonymous("bf16:bfloat16|torch.bfloat16:bfloat16|fp16:float16|half:float16|"
                    "torch.float16:float16|torch.half:float16"),
    implemented("torch_autocast.lower_precision_safe_modules", list, ""),
    off_only("quantize_training", section, "null", "quantized training").or_more(),
    off_only("weight_quantization", section, "null", "weight quantization").or_more(),
    group("compression_training"),
    group("compression_training.layer_reduction").or_more(),
    off_only("compression_training.layer_reduction.enabled", boolean, "false", "layer reduction"),
    group("compression_training.weight_quantization").or_more(),
    group("compression_training.weight_quantization.shared_parameters").or_more(),
    off_only("compression_training.weight_quantization.shared_parameters.enabled",
             boolean,
             "false",
             "compression"),
    group("compression_training.activation_quantization").or_more(),
    group("compression_training.activation_quantization.shared_parameters").or_more(),
    off_only("compression_training.activation_quantization.shared_parameters.enabled",
             boolean,
             "false",
             "compression"),
    group("compression_training.sparse_pruning").or_more(),
    group("compression_training.sparse_pruning.shared_parameters").or_more(),
    off_only("compression_training.sparse_pruning.shared_parameters.enabled",
             boolean,
             "false",
             "compression"),
    group("compression_training.row_pruning").or_more(),
    group("compression_training.row_pruning.shared_parameters").or_more(),
    off_only("compression_training.row_pruning.shared_parameters.enabled",
             boolean,
             "false",
             "compression"),
    group("compression_training.head_pruning").or_more(),
    group("compression_training.head_pruning.shared_parameters").or_more(),
    off_only("compression_training.head_pruning.shared_parameters.enabled",
             boolean,
             "false",
             "compression"),
    group("compression_training.channel_pruning").or_more(),
    group("compression_training.channel_pruning.shared_parameters").or_more(),
    off_only("compression_training.channel_pruning.shared_parameters.enabled",
             boolean,
             "false",
             "compression"),
};

}  // namespace

std::span<const Key> precision_keys() {
  return precision_table;
}

}  // namespace dstrain::config
