#include "runtime/config/ds_config.h"

#include "tests/config/support.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using dstrain::config::DsConfig;
using dstrain::test::contains;
using dstrain::test::message_of;

namespace {

std::string config_error(const std::string& text) {
  return message_of([&] { DsConfig::parse(text, "ds.json").problems().throw_if_any(); });
}

}  // namespace

TEST_CASE("DsConfig: each problem gives one line", "[config][ds_config]") {
  struct Row {
    std::string text, message;
  };
  const Row row = GENERATE(values<Row>({
      // Keys that do not exist, with advice.
      {R"({"zero_optimization": {"stge": 2}})",
       R"(ds.json:1:24: zero_optimization.stge: unknown key; did you mean "stage"?)"},
      {R"({"gradient_clipp1ng": 1})",
       R"(ds.json:1:2: gradient_clipp1ng: unknown key; did you mean "gradient_clipping"?)"},
      {R"({"stage": 2})",
       R"(ds.json:1:2: stage: unknown key; this key belongs in "zero_optimization")"},
      {R"({"zero_optimization": {"gradient_clipping": 1}})",
       "ds.json:1:24: zero_optimization.gradient_clipping: unknown key; this key belongs at the "
       "top level"},
      {R"({"optimizer": {"type": "Adam", "lr": 1}})",
       R"(ds.json:1:32: optimizer.lr: unknown key; this key belongs in "optimizer.params")"},
      {R"({"zero_optimization": {"device": "cpu"}})",
       "ds.json:1:24: zero_optimization.device: unknown key; this key belongs in "
       R"("zero_optimization.offload_param" or in "zero_optimization.offload_optimizer")"},
      {R"({"overlap_com": true})",
       R"(ds.json:1:2: overlap_com: unknown key; did you mean "overlap_comm" in )"
       R"("zero_optimization"?)"},
      {R"({"gradient_accumulation": 2})",
       "ds.json:1:2: gradient_accumulation: unknown key; did you mean "
       R"("gradient_accumulation_steps"?)"},
      {R"({"my_own_key": 1})",
       "ds.json:1:2: my_own_key: unknown key; DeepSpeed has no such key here"},
      {R"({"zero_optimization.stage": 1})",
       "ds.json:1:2: zero_optimization.stage: unknown key; DeepSpeed has no such key here"},
      {R"({"zero_optimization": {"grad_hooks": true}})",
       "ds.json:1:38: zero_optimization.grad_hooks: DeepSpeed has removed this setting; leave it "
       "out"},
      // Types and ranges.
      {R"({"train_batch_size": "8"})",
       R"(ds.json:1:22: train_batch_size: expected a whole number, got "8"; )"
       "without the quotes: 8"},
      {R"({"train_batch_size": 8.5})",
       "ds.json:1:22: train_batch_size: expected a whole number, got 8.5"},
      {R"({"train_batch_size": true})",
       "ds.json:1:22: train_batch_size: expected a whole number, got true"},
      {R"({"train_batch_size": null})",
       "ds.json:1:22: train_batch_size: expected a whole number, got null; leave it out"},
      {R"({"zero_optimization": {"overlap_comm": "false"}})",
       R"(ds.json:1:40: zero_optimization.overlap_comm: expected true or false, got "false"; )"
       "without the quotes: false"},
      {R"({"zero_optimization": {"stage": 4}})",
       "ds.json:1:33: zero_optimization.stage: must be between 0 and 3, got 4"},
      {R"({"gradient_clipping": -1})",
       "ds.json:1:23: gradient_clipping: must be at least 0, got -1"},
      {R"({"zero_optimization": 3})",
       R"(ds.json:1:23: zero_optimization: expected an object, got 3; write {"stage": 3})"},
      {R"({"zero_optimization": 7})", "ds.json:1:23: zero_optimization: expected an object, got 7"},
      {R"({"zero_optimization": "stage_2"})",
       R"(ds.json:1:23: zero_optimization: expected an object, got "stage_2"; write {"stage": 2})"},
      {R"({"fp16": "auto"})",
       R"(ds.json:1:10: fp16: expected an object, got "auto"; write {"enabled": "auto"})"},
      {R"({"bf16": "true"})",
       R"(ds.json:1:10: bf16: expected an object, got "true"; write {"enabled": true})"},
      {R"({"bf16": 1})",
       R"(ds.json:1:10: bf16: expected an object, got 1; write {"enabled": true})"},
      {R"({"activation_checkpointing": "auto"})",
       R"(ds.json:1:30: activation_checkpointing: expected an object, got "auto"; leave it out)"},
      {R"({"optimizer": "adamw"})",
       R"(ds.json:1:15: optimizer: expected an object, got "adamw"; write {"type": "AdamW"})"},
      {R"({"optimizer": "auto"})",
       R"(ds.json:1:15: optimizer: expected an object, got "auto"; leave it out: --optim chooses )"
       "it"},
      {R"({"optimizer": "adamw_torch"})",
       R"(ds.json:1:15: optimizer: expected an object, got "adamw_torch"; leave it out and type )"
       "--optim adamw_torch"},
      {R"({"optimizer": "SGD"})",
       R"(ds.json:1:15: optimizer: expected an object, got "SGD"; its "type" is named in an )"
       R"(object: "SGD" is not implemented; use Adam, AdamW, Lamb or Lion)"},
      {R"({"scheduler": "WarmupDecayLR"})",
       R"(ds.json:1:15: scheduler: expected an object, got "WarmupDecayLR"; write {"type": )"
       R"("WarmupDecayLR", "params": {"total_num_steps": "auto"}})"},
      {R"({"scheduler": "cosine"})",
       R"(ds.json:1:15: scheduler: expected an object, got "cosine"; leave it out and type )"
       "--lr_scheduler_type cosine"},
      {R"({"optimizer": [{"type": "AdamW"}]})",
       "ds.json:1:15: optimizer: expected an object, got a list; without the brackets"},
      {R"({"zero_optimization": {"stage": 3, "offload_param": ["cpu"]}})",
       R"(ds.json:1:53: zero_optimization.offload_param: expected an object, got a list; write )"
       R"({"device": "cpu"})"},
      {R"([{"bf16": {"enabled": true}}])",
       "ds.json:1:1: expected an object, got a list; without the brackets"},
      {R"({"optimizer": {"type": "torch.optim.AdamW"}})",
       R"(ds.json:1:24: optimizer.type: unknown type "torch.optim.AdamW"; did you mean "AdamW"?)"},
      {R"({"optimizer": {"type": "adamw_torch"}})",
       R"(ds.json:1:24: optimizer.type: unknown type "adamw_torch"; did you mean "AdamW"?)"},
      {R"({"optimizer": {"type": "Adam", "params": {"betas": "0.9, 0.95"}}})",
       R"(ds.json:1:52: optimizer.params.betas: expected a list, got "0.9, 0.95"; write [0.9, )"
       "0.95]"},
      {R"({"bf16": {"enabled": "True"}})",
       R"(ds.json:1:22: bf16.enabled: expected true or false, got "True"; without the quotes: )"
       "true"},
      {R"({"zero_optimization": {"reduce_bucket_size": "500MB"}})",
       R"(ds.json:1:46: zero_optimization.reduce_bucket_size: expected a whole number, got )"
       R"("500MB"; write a number without a unit)"},
      {R"({"zero": {"stage": 2}})",
       R"(ds.json:1:2: zero: unknown key; did you mean "zero_optimization"?)"},
      {R"({"per_device_train_batch_size": 2})",
       "ds.json:1:2: per_device_train_batch_size: unknown key; did you mean "
       R"("train_micro_batch_size_per_gpu"?)"},
      {R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"})",
       "ds.json: is the configuration of a model, not DeepSpeed's; give its directory as train "
       "--config_name, or with its weights as --model_name_or_path"},
      {R"({"peft_type": "LORA", "r": 8})",
       "ds.json: is the configuration of an adapter, not DeepSpeed's; LoRA is not implemented"},
      {"\xff\xfe{",
       "ds.json: is UTF-16; make it UTF-8:\n  iconv -f UTF-16 -t UTF-8 ds.json > "
       "ds-utf8.json"},
      // A configuration in one more object.
      {R"({"deepspeed": {"zero_optimization": {"stage": 2}}})",
       "ds.json:1:2: deepspeed: holds the configuration's keys, which belong at the top level; "
       "give "
       "that object alone:\n  jq .deepspeed ds.json > ds-inner.json"},
      {R"({"train_batch_size": 8, "deepspeed": {"zero_optimization": {"stage": 2}}})",
       "ds.json:1:25: deepspeed: holds keys, which belong at the top level; put them there:\n  jq "
       "'del(.deepspeed) + .deepspeed' ds.json > ds-inner.json"},
      {R"({"config": {"ds_config": {"bf16": {"enabled": true}, "optimizer": 3}}})",
       "ds.json:1:2: config: holds the configuration's keys, which belong at the top level; give "
       "that object alone:\n  jq .config.ds_config ds.json > ds-inner.json"},
      {R"({"fp16": true})",
       R"(ds.json:1:10: fp16: expected an object, got true; write {"enabled": true})"},
      {R"({"zero_optimization": {"offload_optimizer": "cpu"}})",
       R"(ds.json:1:45: zero_optimization.offload_optimizer: expected an object, got "cpu"; write )"
       R"({"device": "cpu"})"},
      {R"({"steps_per_print": "inf"})",
       R"(ds.json:1:21: steps_per_print: expected a whole number, got "inf"; write a finite )"
       "number"},
      {R"({"steps_per_print": "auto"})",
       R"(ds.json:1:21: steps_per_print: "auto" has no meaning here; give a value)"},
      {R"({"communication_data_type": "fp23"})",
       R"(ds.json:1:29: communication_data_type: must be one of "fp32", "fp16", "bf16", "bfp16", )"
       R"(got "fp23"; did you mean "fp32"?)"},
      {R"({"fp16": {"loss_scale": -1}})",
       "ds.json:1:25: fp16.loss_scale: must be at least 0, got -1"},
      {R"({"fp16": {"loss_scale_window": true}})",
       "ds.json:1:32: fp16.loss_scale_window: expected a whole number, got true"},
      // Features that are not built.
      {R"({"bf16": {"enabled": true, "check_grad_overflow": false}})",
       "ds.json:1:51: bf16.check_grad_overflow: false: taking steps that are not finite is not "
       "implemented; leave it out or set it to true"},
      {R"({"amp": {"enabled": true}})",
       "ds.json:1:21: amp.enabled: true: apex's automatic mixed precision (use fp16.enabled) is "
       "not implemented; leave it out or set it to false"},
      {R"({"bf16": {"enabled": true, "loss_scale": 0}})",
       "ds.json:1:28: bf16.loss_scale: unknown key; this key belongs in \"fp16\""},
      {R"({"zero_optimization": {"zenflow": {}}})",
       "ds.json:1:35: zero_optimization.zenflow: an object: ZenFlow is not implemented; leave "
       "it out or set it to null"},
      {R"({"sparse_attention": {"mode": "fixed"}})",
       "ds.json:1:22: sparse_attention: an object: sparse attention is not implemented; leave "
       "it out or set it to false or null"},
      {R"({"wall_clock_breakdown": true})",
       "ds.json:1:26: wall_clock_breakdown: true: the breakdown of a step's time (--profile FILE "
       "shows it) is not implemented; leave it out or set it to false"},
      {R"({"wandb": {"enabled": true}})",
       "ds.json:1:23: wandb.enabled: true: the Weights & Biases monitor (metrics.jsonl has its "
       "values) is not implemented; leave it out or set it to false"},
      {R"({"zero_optimization": {"partition_weights": true}})",
       "ds.json:1:24: zero_optimization.partition_weights: unknown key; DeepSpeed has no such key "
       "here"},
      // Optimizer and scheduler.
      {R"({"optimizer": {"params": {"lr": 1}}})",
       "ds.json:1:15: optimizer.type: is missing; set it to Adam, AdamW, Lamb or Lion"},
      {R"({"optimizer": {"type": "Adagrad", "params": {"lr": 1}}})",
       "ds.json:1:24: optimizer.type: \"Adagrad\" is not implemented; use Adam, AdamW, Lamb or "
       "Lion"},
      {R"({"optimizer": {"type": "SGD"}})",
       R"(ds.json:1:24: optimizer.type: "SGD" is not implemented; use Adam, AdamW, Lamb or Lion)"},
      {R"({"optimizer": {"type": "AdamWW"}})",
       R"(ds.json:1:24: optimizer.type: unknown type "AdamWW"; did you mean "AdamW"?)"},
      {R"({"optimizer": {"type": "cpu_adam"}})",
       R"(ds.json:1:24: optimizer.type: unknown type "cpu_adam"; use Adam, AdamW, Lamb or Lion, )"
       "where it runs is chosen elsewhere"},
      {R"({"optimizer": {"type": "Adam", "params": {"max_coeff": 1}}})",
       "ds.json:1:56: optimizer.params.max_coeff: Adam has no such parameter; Lamb has"},
      {R"({"optimizer": {"type": "Adam", "params": {"max_grad_norm": 1}}})",
       "ds.json:1:60: optimizer.params.max_grad_norm: not a parameter of an optimizer; use the "
       R"(top-level key "gradient_clipping")"},
      {R"({"optimizer": {"type": "Adam", "params": {"betas": [0.9]}}})",
       "ds.json:1:52: optimizer.params.betas: must be two numbers in [0, 1)"},
      {R"({"optimizer": {"type": "Adam", "params": {"betas": [0.9, 1]}}})",
       "ds.json:1:52: optimizer.params.betas: must be two numbers in [0, 1)"},
      {R"({"optimizer": {"type": "Adam", "params": {"torch_adam": true,"bias_correction": true}}})",
       "ds.json:1:81: optimizer.params.bias_correction: torch's Adam has no such parameter; leave "
       "out torch_adam"},
      {R"({"scheduler": {"type": "WarmLR"}})",
       R"(ds.json:1:24: scheduler.type: unknown type "WarmLR"; did you mean "WarmupLR"?)"},
      {R"({"scheduler": {"type": "StepLR"}})",
       R"(ds.json:1:24: scheduler.type: "StepLR" is not implemented; use WarmupLR, )"
       "WarmupDecayLR, WarmupCosineLR, LRRangeTest or OneCycle"},
      {R"({"scheduler": {"type": "WarmupLR", "params": {"total_num_steps": 5}}})",
       "ds.json:1:66: scheduler.params.total_num_steps: WarmupLR has no such parameter; "
       "WarmupDecayLR, WarmupCosineLR has"},
      {R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": -1}}})",
       "ds.json:1:67: scheduler.params.warmup_num_steps: must be at least 0, got -1"},
      // Of a type that is not built only the type is told.
      {R"({"optimizer": {"params": {"freeze_step": 4, "ns_steps": 5}, "type": "OnebitAdam"}})",
       R"(ds.json:1:69: optimizer.type: "OneBitAdam" is not implemented; use Adam, AdamW, )"
       "Lamb or Lion"},
      {R"({"scheduler": {"type": "CosineAnnealingLR", "params": {"T_max": 5, "eta_min": 1e-5}}})",
       R"(ds.json:1:24: scheduler.type: "CosineAnnealingLR" is not implemented; use WarmupLR, )"
       "WarmupDecayLR, WarmupCosineLR, LRRangeTest or OneCycle"},
      // Two names of one thing.
      {R"({"bf16": {}, "bfloat16": {}})",
       "ds.json:1:14: bfloat16: is another name of bf16, which is given too; keep one"},
      {R"({"zero_optimization": {"prefetch_bucket_size": 1, "stage3_prefetch_bucket_size": 1}})",
       "ds.json:1:51: zero_optimization.stage3_prefetch_bucket_size: is another name of "
       "zero_optimization.prefetch_bucket_size, which is given too; keep one"},
      {R"({"zero_optimization": {"cpu_offload": false, "offload_optimizer": {}}})",
       "ds.json:1:39: zero_optimization.cpu_offload: cannot be given together with "
       "zero_optimization.offload_optimizer, which replaces it"},
  }));
  CAPTURE(row.text);
  CHECK(config_error(row.text) == row.message);
}

TEST_CASE("DsConfig: the error for a YAML file says how to translate its keys",
          "[config][ds_config]") {
  const auto told = [](const char* text, const char* remedy) {
    CHECK(config_error(text) ==
          fmt::format("ds.json: is YAML; the configuration is DeepSpeed's JSON. {}", remedy));
  };
  told("base_model: m\nsequence_len: 2048\n",
       "Options of train in YAML are a file for --config: --config ds.json");
  told("# a comment\n\n# and another\nbase_model: m\n",
       "Options of train in YAML are a file for --config: --config ds.json");
  told("train_batch_size: 8\nzero_optimization:\n  stage: 2\n",
       "Convert it:\n  python3 -c \"import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), "
       "sys.stdout)\" < ds.json > ds-converted.json");
}

TEST_CASE("DsConfig: a YAML file is named as one", "[config][ds_config]") {
  for (const char* text : {"compute_environment: LOCAL_MACHINE\nzero_stage: 3\n", "---\na: b\n"}) {
    CHECK(
        config_error(text).starts_with("ds.json: is YAML; the configuration is DeepSpeed's JSON"));
  }
}

TEST_CASE("DsConfig: accelerate's file in JSON is named as one", "[config][ds_config]") {
  const std::string error = config_error(
      R"({"compute_environment": "LOCAL_MACHINE", "deepspeed_config": {"zero_stage": 3}})");
  CHECK(error.starts_with("ds.json: is accelerate's configuration, not DeepSpeed's; type its "));
}

TEST_CASE("DsConfig: all problems at once in the order of the file", "[config][ds_config]") {
  const std::string error = config_error(R"({
  "zero_optimization": {"stge": 3, "stage": 9},
  "fp16": {"enabled": true},
  "bf16": {"enabled": true},
  "seed": 1, "seed": 2,
  "optimizer": {"type": "Adagrad"}
})");
  CHECK(error ==
        "ds.json:2:25: zero_optimization.stge: unknown key; did you mean \"stage\"?\n"
        "ds.json:2:45: zero_optimization.stage: must be between 0 and 3, got 9\n"
        "ds.json:4:23: bf16.enabled: bf16 and fp16 cannot be enabled together\n"
        "ds.json:5:14: duplicate key \"seed\", first given at 5:3\n"
        "ds.json:6:25: optimizer.type: \"Adagrad\" is not implemented; use Adam, AdamW, Lamb or "
        "Lion");
}

TEST_CASE("DsConfig: values that leave a feature off give no message", "[config][ds_config]") {
  const DsConfig config = DsConfig::parse(R"({
  "fp16": {"enabled": false, "loss_scale": 0, "loss_scale_window": 0},
  "bfloat16": {"enabled": "auto"},
  "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "none", "pin_memory": true},
    "offload_param": {}, "zero_hpz_partition_size": 1, "mics_shard_size": -1, "zenflow": null,
    "zero_quantized_weights": false},
  "communication_data_type": "FP32", "data_types": {"grad_accum_dtype": "fp32"},
  "sparse_attention": false, "tensorboard": {"enabled": false, "job_name": "x"},
  "gradient_allreduce_op": "Mean", "prescale_gradients": false, "wall_clock_breakdown": false,
  "elasticity": {"enabled": false, "max_train_batch_size": 2000, "micro_batch_sizes": [2, 4]},
  "pipeline": {"stages": "auto"}, "tensor_parallel": {"autotp_size": 0},
  "activation_checkpointing": {"number_checkpoints": false}, "optimizer": {}, "scheduler": {},
  "flops_profiler": {"enabled": false, "output_file": false}
})",
                                          "ds.json");
  CHECK(config.warnings().empty());
  CHECK(config.integer("zero_optimization.stage") == 3);
  CHECK(config.is_auto("bf16.enabled"));
}

TEST_CASE("DsConfig: a boolean zero_optimization is read as the stage", "[config][ds_config]") {
  const DsConfig on = DsConfig::parse(R"({"zero_optimization": true})", "ds.json");
  CHECK(on.integer("zero_optimization.stage") == 1);
  CHECK(on.warnings().size() == 1);
  CHECK(DsConfig::parse(R"({"zero_optimization": false})", "ds.json")
            .integer("zero_optimization.stage") == 0);
}

TEST_CASE("DsConfig: aliases are found by their canonical names", "[config][ds_config]") {
  const DsConfig config = DsConfig::parse(
      R"({"zero_optimization": {"param_persistence_threshold": 7,
          "stage3_gather_fp16_weights_on_model_save": true}})",
      "ds.json");
  CHECK(config.integer("zero_optimization.stage3_param_persistence_threshold") == 7);
  CHECK(config.boolean("zero_optimization.stage3_gather_16bit_weights_on_model_save") == true);
  REQUIRE(config.warnings().size() == 1);
  CHECK(
      contains(config.warnings()[0], "deprecated; now stage3_gather_16bit_weights_on_model_save"));
}

TEST_CASE("DsConfig: load names the file", "[config][ds_config]") {
  const dstrain::test::TempDir folder;
  const auto missing = folder.path() / "none.json";
  CHECK(contains(message_of([&] { DsConfig::load(missing); }), missing.string()));
}
