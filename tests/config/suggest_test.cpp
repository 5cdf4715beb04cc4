#include "runtime/base/suggest.h"

#include <fmt/format.h>

#include "runtime/config/ds_config.h"
#include "tests/config/support.h"
#include "tests/support/catch.h"

using dstrain::suggest;
using dstrain::config::DsConfig;
using dstrain::test::contains;
using dstrain::test::message_of;

namespace {

struct Typo {
  std::string_view section, wrong, right;
};

// Misspellings of the kinds people make: dropped, doubled, swapped and wrong letters, plurals,
// dashes, capitals.
constexpr Typo typos[] = {
    {"", "gradient_clipp1ng", "gradient_clipping"},
    {"", "gradient_cliping", "gradient_clipping"},
    {"", "gradient_clip", "gradient_clipping"},
    {"", "train_batchsize", "train_batch_size"},
    {"", "train-batch-size", "train_batch_size"},
    {"", "train_bacth_size", "train_batch_size"},
    {"", "tran_batch_size", "train_batch_size"},
    {"", "train_micro_batch_size_per_cpu", "train_micro_batch_size_per_gpu"},
    {"", "train_micro_batch_size", "train_micro_batch_size_per_gpu"},
    {"", "train_mirco_batch_size_per_gpu", "train_micro_batch_size_per_gpu"},
    {"", "gradient_acumulation_steps", "gradient_accumulation_steps"},
    {"", "gradient_accumulation_step", "gradient_accumulation_steps"},
    {"", "gradient_accumulation", "gradient_accumulation_steps"},
    {"", "gradients_accumulation_steps", "gradient_accumulation_steps"},
    {"", "zero_optimisation", "zero_optimization"},
    {"", "zero_optimizations", "zero_optimization"},
    {"", "zero_optimzation", "zero_optimization"},
    {"", "Zero_Optimization", "zero_optimization"},
    {"", "optmizer", "optimizer"},
    {"", "optimiser", "optimizer"},
    {"", "shceduler", "scheduler"},
    {"", "schedular", "scheduler"},
    {"", "fp61", "fp16"},
    {"", "steps_per_pirnt", "steps_per_print"},
    {"", "step_per_print", "steps_per_print"},
    {"", "wall_clock_break_down", "wall_clock_breakdown"},
    {"", "prescale_gradient", "prescale_gradients"},
    {"", "activation_checkpoint", "activation_checkpointing"},
    {"", "flops_profiller", "flops_profiler"},
    {"", "tensorbord", "tensorboard"},
    {"zero_optimization", "stge", "stage"},
    {"zero_optimization", "stages", "stage"},
    {"zero_optimization", "overlap_com", "overlap_comm"},
    {"zero_optimization", "overlap_comms", "overlap_comm"},
    {"zero_optimization", "contigous_gradients", "contiguous_gradients"},
    {"zero_optimization", "reduce_buckets_size", "reduce_bucket_size"},
    {"zero_optimization", "reduce_bucketsize", "reduce_bucket_size"},
    {"zero_optimization", "allgather_partition", "allgather_partitions"},
    {"zero_optimization", "all_gather_bucket_size", "allgather_bucket_size"},
    {"zero_optimization", "offload_optimiser", "offload_optimizer"},
    {"zero_optimization", "offload_params", "offload_param"},
    {"zero_optimization", "stage3_param_persistance_threshold",
     "stage3_param_persistence_threshold"},
    {"zero_optimization", "stage3_max_live_params", "stage3_max_live_parameters"},
    {"zero_optimization", "stage3_gather_16bit_weights_on_model_saves",
     "stage3_gather_16bit_weights_on_model_save"},
    {"zero_optimization", "sub_groupsize", "sub_group_size"},
    {"zero_optimization.offload_optimizer", "devise", "device"},
    {"zero_optimization.offload_optimizer", "pinned_memory", "pin_memory"},
    {"zero_optimization.offload_param", "nvme_pth", "nvme_path"},
    {"fp16", "enable", "enabled"},
    {"fp16", "loss_scale_windows", "loss_scale_window"},
    {"fp16", "hystersis", "hysteresis"},
    {"bf16", "enabeld", "enabled"},
    {"optimizer", "typ", "type"},
    {"optimizer", "parms", "params"},
    {"optimizer.params", "wieght_decay", "weight_decay"},
    {"optimizer.params", "weight-decay", "weight_decay"},
    {"optimizer.params", "beta", "betas"},
    {"optimizer.params", "epss", "eps"},
    {"scheduler.params", "warmup_num_step", "warmup_num_steps"},
    {"scheduler.params", "warm_up_num_steps", "warmup_num_steps"},
    {"scheduler.params", "warmup_maxlr", "warmup_max_lr"},
};

/// {"section": {"key": 1}}
std::string nested(std::string_view section, std::string_view key) {
  std::string text = fmt::format("{{\"{}\": 1}}", key);
  while (!section.empty()) {
    const std::size_t dot = section.rfind('.');
    const bool last = dot == std::string_view::npos;
    text = fmt::format("{{\"{}\": {}}}", last ? section : section.substr(dot + 1), text);
    section = last ? std::string_view{} : section.substr(0, dot);
  }
  return text;
}

}  // namespace

TEST_CASE("Suggest: finds what a misspelt key means", "[config][suggest]") {
  std::size_t right = 0;
  for (const Typo& typo : typos) {
    const std::string error = message_of([&] {
      DsConfig::parse(nested(typo.section, typo.wrong), "ds.json").problems().throw_if_any();
    });
    if (contains(error, fmt::format("did you mean \"{}\"?", typo.right))) {
      ++right;
    } else {
      UNSCOPED_INFO(error);
    }
  }
  const std::size_t total = std::size(typos);
  REQUIRE(total >= 40);
  CHECK(20 * right >= 19 * total);
}

TEST_CASE("Suggest: is silent if no name is near", "[config][suggest]") {
  const std::string_view known[] = {"stage", "aio", "lr", "offload_param"};
  const std::string word = GENERATE("", "xyz", "stgxx", "io_uring", "l", "off", "learning_rate");
  CAPTURE(word);
  CHECK(suggest(word, known).empty());
}

TEST_CASE("Suggest: finds names with a part more or less", "[config][suggest]") {
  const std::string_view known[] = {"train_file",
                                    "preprocessing_num_workers",
                                    "lr",
                                    "per_device_train_batch_size",
                                    "train_batch_size",
                                    "file"};
  CHECK(suggest("train_file_path", known) == "train_file");
  CHECK(suggest("my_train_file", known) == "train_file");
  CHECK(suggest("preprocess_num_workers", known) == "preprocessing_num_workers");
  CHECK(suggest("per-device-train", known) == "per_device_train_batch_size");
  CHECK(suggest("lr_rate", known).empty());
  CHECK(suggest("profile_file", known).empty());
}

TEST_CASE("Suggest: never suggests the opposite or the other file", "[config][suggest]") {
  const std::string_view known[] = {"data_path", "train_file", "no_shuffle", "packing_of_records",
                                    "eval_steps"};
  for (const std::string_view word :
       {"eval_data_path", "val_file", "validation_data_path", "no_packing_of_records",
        "disable_packing_of_records", "train_eval_file", "train_steps"}) {
    CAPTURE(word);
    CHECK(suggest(word, known).empty());
  }
  CHECK(suggest("my_data_path", known) == "data_path");
  CHECK(suggest("noshuffle", known) == "no_shuffle");
  CHECK(suggest("eval_step", known) == "eval_steps");
}

TEST_CASE("Suggest: takes the nearest", "[config][suggest]") {
  const std::string_view known[] = {"--num_gpus", "--num_nodes", "--num-layers"};
  CHECK(suggest("--num_gpu", known) == "--num_gpus");
  CHECK(suggest("--num_node", known) == "--num_nodes");
  CHECK(suggest("--num_layers", known) == "--num-layers");
  CHECK(suggest(std::string(100000, 'x'), known).empty());
}
