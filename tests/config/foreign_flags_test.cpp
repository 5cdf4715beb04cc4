#include <algorithm>

#include <fmt/format.h>

#include "runtime/config/schema.h"
#include "runtime/config/train_flags.h"
#include "tests/config/resolved.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::test::Arguments;
using dstrain::test::contains;
using dstrain::test::options_error;

TEST_CASE("TrainOptions: every foreign option does what its status says", "[config][options]") {
  for (const FlagRow& row : foreign_flags()) {
    CAPTURE(row.name);
    REQUIRE_FALSE(row.help.empty());
    if (row.status == FlagStatus::stated) continue;
    const std::string name = fmt::format("--{}", row.name);
    const bool on = row.boolean() && row.off == "false";
    const std::string asks = row.boolean()         ? (on ? "true" : "false")
                             : row.choices.empty() ? "17"
                                                   : std::string(split_choices(row.choices).back());
    std::vector<std::string> quiet;
    for (const std::string_view off : split_choices(row.off)) quiet.emplace_back(off);
    for (const std::string& off : quiet) {
      if (off == asks) continue;
      CHECK(read_train_flags(Arguments{name, off}).warnings.empty());
    }
    if (std::find(quiet.begin(), quiet.end(), asks) != quiet.end()) continue;
    if (row.status == FlagStatus::refused) {
      const std::string why = row.told == nullptr ? std::string(row.help) : row.told(asks, {});
      const std::string told = options_error({name, asks});
      CHECK(contains(told, fmt::format("{} {}: ", name, asks)));
      CHECK(contains(told, why));
    } else {
      CHECK(read_train_flags(Arguments{name, asks}).warnings ==
            Arguments{fmt::format("{}: has no effect: {}", name, row.help)});
    }
  }
}

TEST_CASE("TrainOptions: statements about the model are kept", "[config][options]") {
  int stated = 0;
  for (const FlagRow& row : foreign_flags()) {
    if (row.status != FlagStatus::stated) continue;
    CAPTURE(row.name);
    ++stated;
    const std::string name = fmt::format("--{}", row.name);
    const Arguments typed = row.boolean() ? Arguments{name} : Arguments{name, "17"};
    const TrainOptions options = read_train_flags(typed);
    CHECK(options.warnings.empty());
    REQUIRE(options.statements.size() == 1);
    CHECK(options.statements[0].option == row.name);
    CHECK(options.statements[0].typed_as == name);
    CHECK(options.statements[0].value == (row.boolean() ? "true" : "17"));
  }
  CHECK(stated > 10);
  CHECK(options_error({"--ffn_hidden_size", "wide"}) ==
        "--ffn_hidden_size: expected a number, got \"wide\"");
  CHECK(options_error({"--swiglu", "maybe"}) == "--swiglu: expected true or false, got \"maybe\"");
}

TEST_CASE("TrainOptions: the remedy has the value that was typed", "[config][options]") {
  struct Row {
    Arguments arguments;
    std::string message;
  };
  const Row row = GENERATE(values<Row>({
      {{"--validation_split_percentage", "5"},
       "--validation_split_percentage 5: give --validation_file FILE, or --split 95,5,0; leave it "
       "out or set it to 0"},
      {{"--validation_file", "v", "--validation_split_percentage", "5"},
       "--validation_split_percentage 5: --validation_file names the held-out data already; "
       "leave it out or set it to 0"},
      {{"--val_size", "0.1"},
       "--val_size 0.1: give --validation_file FILE, or --split 90,10,0; leave it out or set it to "
       "0"},
      {{"--val_size", "100"},
       "--val_size 100: give --validation_file FILE, or a part of the data, as in --split 95,5,0; "
       "leave it out or set it to 0"},
      {{"--data_split", "2,4,4"},
       "--data_split 2,4,4: the stages of DeepSpeed-Chat do not share a file here; leave it out to "
       "train on all of it, or give --split 2,0,8 to train on the first stage's part"},
      {{"--dataset_config_name", "x"},
       "--dataset_config_name x: data sets are not downloaded; give --train_file FILE"},
      {{"--dataset_config_name", "x", "--data_path", "t"},
       "--dataset_config_name x: data sets are not downloaded; --data_path names the data "
       "already"},
      {{"--finetuning_type", "freeze"},
       "--finetuning_type freeze: frozen layers are not implemented; all parameters are trained; "
       "leave it out or set it to full"},
      {{"--lr_scheduler_type", "cosine", "--lr_scheduler_kwargs", R"({"min_lr_rate":0.1})"},
       R"(--lr_scheduler_kwargs {"min_lr_rate":0.1}: for a cosine that ends there, leave out )"
       R"(--lr_scheduler_type too and put into the configuration "scheduler": {"type": )"
       R"("WarmupCosineLR", "params": {"cos_min_ratio": 0.1, "total_num_steps": "auto", )"
       R"("warmup_num_steps": "auto", "warmup_type": "linear"}}; leave it out or set it to {})"},
      {{"--rampup-batch-size", "16", "16", "100"},
       "--rampup_batch_size 16 16 100: the batch has one size from the first step on; leave it "
       "out, and --global_batch_size N holds throughout"},
      {{"--report_to", "wandb", "tensorboard"},
       "--report_to wandb tensorboard: not implemented; leave it out or set it to none"},
      {{"--val_set_size", "0.05"},
       "--val_set_size 0.05: give --validation_file FILE, or --split 95,5,0; leave it out or set "
       "it to 0"},
      {{"--offload_optimizer_device", "cpu"},
       R"(--offload_optimizer_device cpu: put {"zero_optimization": {"stage": 2, )"
       R"("offload_optimizer": {"device": "cpu"}}} into the configuration that --deepspeed names; )"
       "leave it out or set it to none"},
      {{"--offload_param_device", "nvme"},
       R"(--offload_param_device nvme: put {"zero_optimization": {"stage": 3, "offload_param": )"
       R"({"device": "nvme", "nvme_path": "DIR"}}} into the configuration that --deepspeed names; )"
       "leave it out or set it to none"},
      {{"--adam_offload"},
       R"(--adam_offload: put {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": )"
       R"("cpu"}}} into the configuration that --deepspeed names; )"
       "leave it out or set it to false"},
      {{"--config_file", "acc.yaml"},
       "--config_file acc.yaml: use --config FILE for a file of options; accelerate's is not read"},
      {{"--neftune_noise_alpha", "5"},
       "--neftune_noise_alpha 5: not implemented; leave it out or set it to 0"},
      {{"--accelerator_config", R"({"split_batches": true})"},
       R"(--accelerator_config {"split_batches": true}: not implemented; leave it out)"},
      {{"--fsdp_config", "f.json"},
       "--fsdp_config f.json: FSDP is not implemented; zero_optimization.stage 3 shards likewise; "
       "leave it out"},
      {{"--fsdp", "full_shard", "auto_wrap"},
       "--fsdp full_shard auto_wrap: FSDP is not implemented; use --zero_stage 3; leave it out or "
       "set it to false"},
      {{"--fsdp", "shard_grad_op"},
       "--fsdp shard_grad_op: FSDP is not implemented; use --zero_stage 2; leave it out or set it "
       "to false"},
      {{"--truncation_side", "left"},
       "--truncation_side left: a record that is too long loses its end; leave it out or set it to "
       "right"},
      {{"--train_type", "longlora"},
       "--train_type longlora: LoRA is not implemented; all parameters are trained; leave it out "
       "or set it to full"},
      {{"--quantization_bit", "4"},
       "--quantization_bit 4: weights of fewer than 16 bits are not implemented; leave it out"},
      {{"--train_file", "a b.jsonl", "--prompt_column", "content"},
       "--prompt_column content: leave it out or set it to prompt, and rename the key of the "
       "records to prompt:\n  jq -c '.prompt = .content | del(.content)' 'a b.jsonl' > "
       "renamed.jsonl"},
      {{"--train_file", "t.jsonl", "--input_key", "q", "--output_key", "a"},
       "--input_key q and --output_key a: leave both out, and rename the keys of the records to "
       "prompt and completion:\n  jq -c '.prompt = .q | .completion = .a | del(.q, .a)' t.jsonl > "
       "renamed.jsonl"},
      {{"--input_column_name", "q", "--output_column_name", "completion"},
       "--input_column_name q: leave it out or set it to prompt, and rename the key of the records "
       "to prompt:\n  jq -c '.prompt = .q | del(.q)' FILE > renamed.jsonl"},
      {{"--input_key", "messages", "--output_key", "a"},
       "--output_key a: leave it out or set it to completion, and rename the key of the records to "
       "completion:\n  jq -c '.completion = .a | del(.a)' FILE > renamed.jsonl"},
      {{"--train_samples", "1000"},
       "--train_samples 1000: give --max_steps N, the samples divided by those of a step"},
      {{"--train_samples", "1000", "--global_batch_size", "32"},
       "--train_samples 1000: give --max_steps 32, of 32 samples"},
      {{"--train_samples", "1000", "--max_steps", "9"},
       "--train_samples 1000: give --max_steps N, the samples divided by those of a step; leave it "
       "out"},
      {{"--tokenizer", "t", "--tokenizer_type", "GPT2BPETokenizer"},
       "--tokenizer_type GPT2BPETokenizer: give --tokenizer DIR, a directory with the tokenizer's "
       "files; leave it out"},
      {{"--train_file", "t", "--source_lang", "en"},
       "--source_lang en: text is not made into pairs; give --train_file with JSON lines of token "
       R"(ids, {"input_ids": [...], "labels": [...]}; leave it out)"},
      {{"--global_batch_size", "8", "--rampup-batch-size", "2", "2", "9"},
       "--rampup_batch_size 2 2 9: the batch has one size from the first step on; leave it out, "
       "and "
       "--global_batch_size N holds throughout"},
      {{"--output_key", "an \"answer\""},
       R"(--output_key an "answer": leave it out or set it to completion, and rename the key of )"
       "the records to completion:\n  jq -c '.completion = "
       R"(.["an \"answer\""] | del(.["an \"answer\""])' FILE > renamed.jsonl)"},
  }));
  CAPTURE(row.arguments);
  CHECK(options_error(row.arguments) == row.message);
}

TEST_CASE("TrainOptions: words of other programs are translated", "[config][options]") {
  const auto read = [](const Arguments& arguments) {
    return read_train_flags(arguments);
  };
  for (const std::string yes : {"true", "True", "TRUE", "1"}) {
    CHECK(read({"--resume_from_checkpoint", yes}).resume_from_checkpoint.value == "true");
  }
  for (const std::string no : {"false", "False", "0", "None", "null"}) {
    CHECK(read({"--resume_from_checkpoint", no}).resume_from_checkpoint.value == "false");
  }
  CHECK(read({"--eval_data_path", "v"}).validation_file.value == std::vector<DataFile>{{"v"}});
  CHECK(read({"--neat_packing", "true"}).reset_attention_mask.value);
  CHECK(read({"--lr-warmup-iters", "30"}).warmup_steps.value == 30);
  CHECK(read({"--lr-warmup-fraction", ".01"}).warmup_ratio.value == 0.01);
  CHECK(read({"--val_size", "0", "--weight-decay-incr-style", "constant"}).warnings.empty());
  CHECK(read({"--gradient_clipping", "0.5"}).max_grad_norm.value == 0.5);
  CHECK(read({"--save_steps", "-1"}).save_steps.value == 0);
  CHECK(read({"--checkpointing_steps", "20"}).save_steps.value == 20);
  CHECK(read({"--pretrain", "m"}).model_name_or_path.value == "m");
  CHECK(read({"--base_model", "m"}).model_name_or_path.value == "m");
  CHECK(read({"--save_path", "o"}).output_dir.value == "o");
  CHECK(read({"--l2", "0.1"}).weight_decay.value == 0.1);
  CHECK(read({"--deepspeed_config_file", "f"}).deepspeed_config.value == "f");
  for (const std::string name : {"AdamW", "adamw", "adamw_torch"}) {
    CHECK(read({"--optimizer", name}).optim.typed_as == "--optimizer");
    CHECK(read({"--optim", name}).optim.typed());
  }
  for (const std::string type : {"bf16", "BF16", "bf16-mixed"}) {
    const TrainOptions options = read({"--precision", type});
    CHECK((options.bf16.value && !options.fp16.value));
    CHECK(options.bf16.typed_as == "--precision");
  }
  CHECK(read({"--precision", "fp16", "--bf16", "false"}).fp16.value);
  CHECK_FALSE(read({"--precision", "fp32"}).bf16.value);
  CHECK(read({"--disable_gradient_checkpointing", "True"}).warnings.empty());
  CHECK(read({"--disable_gradient_checkpointing", "false"}).warnings ==
        Arguments{"--disable_gradient_checkpointing false: has no effect: "
                  "--gradient_checkpointing recomputes activations"});
  CHECK(options_error({"--disable_gradient_checkpointing", "--gradient_checkpointing"}) ==
        "--gradient_checkpointing and --disable_gradient_checkpointing contradict each other; keep "
        "one");
  CHECK(read({"--init-method-std", "0.02", "--model_name_or_path", "m"}).warnings ==
        Arguments{"--init_method_std: has no effect: --model_name_or_path brings its weights"});
}

TEST_CASE("TrainOptions: empty values of foreign options give no message", "[config][options]") {
  const auto warnings = [](const Arguments& arguments) {
    return read_train_flags(arguments).warnings;
  };
  for (const FlagRow& row : foreign_flags()) {
    if (row.boolean() || row.status == FlagStatus::stated) continue;
    CAPTURE(row.name);
    const std::string name = fmt::format("--{}", row.name);
    for (const std::string unset : {"None", "none", "null", "[]", "{}"}) {
      CHECK(warnings({name, unset}).empty());
    }
    if (row.value_optional) continue;
    CHECK(warnings({name, "", "--bf16"}).empty());
    CHECK(warnings({name + "=", "--bf16"}).empty());
    CHECK(warnings({name + "=[]", "--bf16"}).empty());
  }
  CHECK(read_train_flags(Arguments{"--num_query_groups", "None"}).statements.empty());
  const auto silent = GENERATE(values<Arguments>({
      {"--neftune_noise_alpha", "0.0"},
      {"--accelerator_config", R"({"split_batches": false})"},
      {"--accelerator_config", R"({ "even_batches":true, "dispatch_batches":null })"},
      {"--offload_param_device", "none", "--offload_optimizer_device", "none"},
      {"--truncation_side", "right", "--truncation_strategy", "right", "--padding_side", "right"},
      {"--train_type", "full", "--split_dataset_ratio", "0", "--report_to", "[]"},
      {"--train_on_prompt", "false", "--mask_history", "false", "--use_unsloth", "false"},
      {"--shift_attn", "False", "--quantization_bit", "none", "--log_with", "none"},
      {"--prompt_column", "prompt", "--response_column", "completion"},
      {"--input_key", "messages", "--tokenizer_revision", "main"},
  }));
  CAPTURE(silent);
  CHECK(warnings(silent).empty());
}

TEST_CASE("TrainOptions: after train the version option is a chat template", "[config][options]") {
  const Arguments told{
      "--version: has no effect: conversations are written by the chat template of the model's "
      "directory, prompts and completions without one"};
  CHECK(read_train_flags(Arguments{"--version", "v1", "--bf16"}).warnings == told);
  CHECK(read_train_flags(Arguments{"--version=plain"}).warnings == told);
  CHECK(read_train_flags(Arguments{"--version", "--bf16"}).warnings == told);
}

TEST_CASE("TrainOptions: words match in any case and are stored canonically", "[config][options]") {
  for (const std::string word : {"epoch", "Epoch", "EPOCH"}) {
    CHECK(read_train_flags(Arguments{"--eval_strategy", word}).eval_strategy.value == "epoch");
    CHECK(read_train_flags(Arguments{"--save_strategy", word}).save_strategy.value == "epoch");
  }
  CHECK(read_train_flags(Arguments{"--fp16_backend", "AUTO"}).warnings.empty());
  CHECK(read_train_flags(Arguments{"--no_tf32", "--fsdp", "", "--local_rank", "-1"})
            .warnings.empty());
}
