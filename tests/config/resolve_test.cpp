#include "runtime/config/resolve.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/config/schedule_json.h"
#include "tests/config/resolved.h"
#include "tests/support/catch.h"
#include "tests/support/variable.h"

using namespace dstrain::config;
using dstrain::test::adam;
using dstrain::test::Arguments;
using dstrain::test::contains;
using dstrain::test::error_of;
using dstrain::test::message_of;
using dstrain::test::origin_of;
using dstrain::test::resolved;
using dstrain::test::settings_of;

namespace {

const std::string automatic = R"({
  "fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"},
  "optimizer": {"type": "AdamW",
    "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
  "scheduler": {"type": "WarmupLR",
    "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto"}},
  "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
    "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"},
  "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
  "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"
})";

}  // namespace

TEST_CASE("Resolve: an option for a parameter that the optimizer lacks gets a warning",
          "[config][resolve]") {
  const std::string lion =
      R"({"train_batch_size": 2, "optimizer": {"type": "Lion", "params": {}}})";
  CHECK(settings_of(lion, {"--adam_epsilon", "1e-3"}).warnings ==
        Arguments{"--adam_epsilon: has no effect: Lion has no eps"});
  CHECK(settings_of(lion, {"--adam_beta1", "0.8", "--weight_decay", "0.1"}).warnings.empty());
  const std::string lamb =
      R"({"train_batch_size": 2, "optimizer": {"type": "Lamb", "params": {}}})";
  CHECK(settings_of(lamb, {"--adam_epsilon", "1e-3"}).warnings.empty());
}

TEST_CASE("Resolve: without configuration the defaults are those of Hugging Face",
          "[config][resolve]") {
  const TrainSettings settings = settings_of("");
  CHECK(settings.micro_batch_size == 8);
  CHECK(settings.accumulation_steps == 1);
  CHECK(settings.train_batch_size == 16);
  CHECK(settings.schedule.learning_rate == 5e-5);
  CHECK(adam(settings).betas.beta1 == 0.9);
  CHECK(adam(settings).betas.beta2 == 0.999);
  CHECK(adam(settings).epsilon == 1e-8);
  CHECK(adam(settings).weight_decay == 0);
  CHECK(adam(settings).decoupled_decay);
  CHECK_FALSE(settings.optimizer.decays_all);
  CHECK(settings_of(R"({"train_batch_size": 16, "optimizer": {"type": "AdamW"}})")
            .optimizer.decays_all);
  CHECK_FALSE(settings.data.drop_last);
  CHECK(settings.gradient_clipping == 1);
  CHECK(settings.steps == 0);  // three epochs of data that are not known
  CHECK(resolved("", {}, {.world_size = 2, .train_samples = 100}).settings.steps == 3 * 7);
  CHECK(settings.seed == 42);
  CHECK(schedule_json(settings.schedule) ==
        R"({"type":"linear","warmup_steps":0,"total_steps":"auto"})");
  CHECK(settings.schedule.learning_rate == 5e-5);
  CHECK(settings.zero.stage == 0);
  CHECK(settings.zero.reduce_bucket_numel == 0);
  CHECK(settings.zero.persistence_threshold_numel == 100'000);
  CHECK(settings.data.shuffle);
  CHECK(settings.data.tokenizer == "byte");
  CHECK(settings.warnings.empty());
}

TEST_CASE("Resolve: settings that only accelerate asks for are an error", "[config][resolve]") {
  using dstrain::test::Variable;
  const auto problem_of = [](const std::string& text, const Arguments& flags) {
    const TrainSettings settings = settings_of(text, flags);
    return message_of([&] { check_accelerate_environment(settings, !text.empty()); });
  };
  const std::string stage3 = R"({"train_batch_size": 8, "bf16": {"enabled": true},
    "gradient_clipping": 0.5, "gradient_accumulation_steps": 4,
    "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}})";
  // What accelerate launch sets of itself.
  const Variable precision("ACCELERATE_MIXED_PRECISION", "no");
  const Variable steps("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "1");
  CHECK(problem_of("", {}) == "no error");
  CHECK(problem_of(stage3, {}) ==
        "accelerate's variables are not read here, and ask for something else than the options do: "
        "ACCELERATE_GRADIENT_ACCUMULATION_STEPS=1 (--gradient_accumulation_steps 1); type that, or "
        "unset them");
  const Variable bf16("ACCELERATE_MIXED_PRECISION", "bf16");
  const Variable four("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "4");
  const Variable clipping("ACCELERATE_GRADIENT_CLIPPING", "0.5");
  const Variable stage("ACCELERATE_DEEPSPEED_ZERO_STAGE", "3");
  const Variable offload("ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE", "cpu");
  const Variable none("ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE", "none");
  const Variable file("ACCELERATE_DEEPSPEED_CONFIG_FILE", "z3.json");
  const Variable fsdp("ACCELERATE_USE_FSDP", "true");
  CHECK(problem_of(stage3, {}) == "no error");
  CHECK_THAT(problem_of("", {"--bf16", "--gradient_accumulation_steps", "4"}),
             Catch::Matchers::ContainsSubstring(
                 "ACCELERATE_GRADIENT_CLIPPING=0.5 (--max_grad_norm 0.5), "
                 "ACCELERATE_DEEPSPEED_CONFIG_FILE=z3.json (--deepspeed z3.json), "
                 "ACCELERATE_DEEPSPEED_ZERO_STAGE=3 (--zero_stage 3), "
                 "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE=cpu ") &&
                 !Catch::Matchers::ContainsSubstring("MIXED_PRECISION"));
}

TEST_CASE("Resolve: auto takes the options and their defaults", "[config][resolve]") {
  SECTION("defaults") {
    const TrainSettings settings = settings_of(automatic);
    CHECK(settings.train_batch_size == 16);
    CHECK(settings.micro_batch_size == 8);
    CHECK(settings.schedule.learning_rate == 5e-5);
    const auto warmup = std::get<WarmupLr>(settings.schedule.kind);
    CHECK(warmup.warmup_max_lr == 5e-5);
    CHECK(warmup.warmup_num_steps == 2);
    CHECK(settings.zero.reduce_bucket_numel == 64 * 64);
    CHECK(settings.zero.persistence_threshold_numel == 640);
  }
  SECTION("typed") {
    const TrainSettings settings = settings_of(
        automatic, {"--per_device_train_batch_size", "4", "--gradient_accumulation_steps=3", "--lr",
                    "1e-3", "--adam_beta1", "0.8", "--adam_beta2", "0.95", "--adam_epsilon", "1e-6",
                    "--weight_decay", "0.1", "--max_grad_norm", "0.5", "--warmup_steps", "7"});
    CHECK(settings.train_batch_size == 24);
    CHECK(settings.micro_batch_size == 4);
    CHECK(settings.accumulation_steps == 3);
    CHECK(settings.schedule.learning_rate == 1e-3);
    CHECK(adam(settings).betas.beta1 == 0.8);
    CHECK(adam(settings).betas.beta2 == 0.95);
    CHECK(adam(settings).epsilon == 1e-6);
    CHECK(adam(settings).weight_decay == 0.1);
    CHECK(settings.gradient_clipping == 0.5);
    const auto warmup = std::get<WarmupLr>(settings.schedule.kind);
    CHECK(warmup.warmup_min_lr == 0);
    CHECK(warmup.warmup_max_lr == 1e-3);
    CHECK(warmup.warmup_num_steps == 7);
    CHECK(warmup.warmup_type == WarmupType::log);
  }
  SECTION("the model's width is not known yet") {
    const TrainSettings settings = settings_of(automatic, {}, {.world_size = 1});
    CHECK(settings.zero.reduce_bucket_numel == 0);
    CHECK(settings.zero.persistence_threshold_numel == 100'000);
  }
}

TEST_CASE("Resolve: the configuration's optimizer has DeepSpeed's defaults", "[config][resolve]") {
  const std::string text = R"({"train_batch_size": 4, "optimizer": {"type": "Adam"}})";
  CHECK(settings_of(text).schedule.learning_rate == 1e-3);
  CHECK(settings_of(text, {"--learning_rate", "0.1"}).schedule.learning_rate == 0.1);
}

TEST_CASE("Resolve: Adam is AdamW unless its mode says otherwise", "[config][resolve]") {
  const auto optimizer = [](const std::string& type, const std::string& params) {
    return settings_of(fmt::format(R"({{"train_batch_size": 4, "optimizer": {{"type": "{}",
                                       "params": {{{}}}}}}})",
                                   type, params));
  };
  CHECK(adam(optimizer("Adam", "")).decoupled_decay);
  CHECK_FALSE(adam(optimizer("adam", R"("adam_w_mode": false)")).decoupled_decay);
  const TrainSettings forced = optimizer("ADAMW", R"("adam_w_mode": false)");
  CHECK(adam(forced).decoupled_decay);
  CHECK(forced.warnings.size() == 1);
  CHECK_FALSE(adam(optimizer("Adam", R"("bias_correction": false)")).bias_correction);
  // torch.optim.AdamW decays by 0.01 unless told.
  CHECK(adam(optimizer("Adam", R"("torch_adam": true)")).weight_decay == 0.01);
  CHECK(adam(optimizer("Adam", R"("torch_adam": true, "weight_decay": 0)")).weight_decay == 0);
  CHECK(adam(optimizer("Adam", R"("torch_adam": true, "adam_w_mode": false)")).weight_decay == 0);
}

TEST_CASE("Resolve: Lamb", "[config][resolve]") {
  const auto lamb = [](const std::string& params) {
    return fmt::format(R"({{"train_batch_size": 4, "optimizer": {{"type": "lamb",
                           "params": {{{}}}}}}})",
                       params);
  };
  const TrainSettings plain = settings_of(lamb(""));
  const auto defaults = std::get<dstrain::rules::Lamb::Settings>(plain.optimizer.rule);
  CHECK(plain.schedule.learning_rate == 1e-3);
  CHECK(defaults.max_coeff == 10);
  CHECK(defaults.min_coeff == 0.01);
  CHECK(defaults.weight_decay == 0);
  CHECK(defaults.bias_correction);
  CHECK_FALSE(defaults.eps_inside_sqrt);
  const std::string text = lamb(R"("lr": 0.1, "betas": [0.8, 0.9], "eps": 1e-6, "max_coeff": 0.3,
      "min_coeff": 0.1, "bias_correction": false, "eps_inside_sqrt": true, "weight_decay": 0.2)");
  const TrainSettings settings = settings_of(text);
  const auto given = std::get<dstrain::rules::Lamb::Settings>(settings.optimizer.rule);
  CHECK(settings.schedule.learning_rate == 0.1);
  CHECK((given.betas == dstrain::rules::Betas{0.8, 0.9}));
  CHECK(given.epsilon == 1e-6);
  CHECK(given.max_coeff == 0.3);
  CHECK(given.min_coeff == 0.1);
  CHECK(given.weight_decay == 0.2);
  CHECK_FALSE(given.bias_correction);
  CHECK(given.eps_inside_sqrt);
  CHECK(contains(error_of(lamb(R"("max_coeff": 0.3, "min_coeff": 0.5)")),
                 "params.min_coeff: min_coeff, 0.5, is more than max_coeff, 0.3"));
  CHECK(contains(error_of(lamb(R"("max_coeff": 0.001)")),
                 "params.max_coeff: min_coeff, 0.01, is more than max_coeff, 0.001"));
  CHECK(contains(error_of(lamb(""), {"--optim", "adamw_torch"}), "optimizer.type"));
  CHECK(contains(error_of(lamb(""), {"--optimizer", "adam"}),
                 "is Lamb here, but --optimizer is adamw_torch"));
  CHECK(contains(error_of(lamb(R"("adam_w_mode": true)")), "Lamb has no such parameter"));
}

TEST_CASE("Resolve: Lion", "[config][resolve]") {
  const auto lion = [](const std::string& params) {
    return fmt::format(R"({{"train_batch_size": 4, "optimizer": {{"type": "lion",
                           "params": {{{}}}}}}})",
                       params);
  };
  const auto settings = [](const std::string& text, const Arguments& flags = {}) {
    return std::get<dstrain::rules::Lion::Settings>(settings_of(text, flags).optimizer.rule);
  };
  using dstrain::rules::Betas;
  CHECK((settings(lion("")).betas == Betas{0.9, 0.99}));
  CHECK((settings(lion(""), {"--adam_beta2", "0.95"}).betas == Betas{0.9, 0.95}));
  CHECK((settings(lion(R"("betas": "auto")")).betas == Betas{0.9, 0.999}));  // the option's
  CHECK((settings(lion(R"("betas": [0.8, 0.9])")).betas == Betas{0.8, 0.9}));
  CHECK(settings(lion("")).weight_decay == 0);
  CHECK(settings(lion(R"("weight_decay": 0.2, "fp32_optimizer_states": true)")).weight_decay ==
        0.2);
  CHECK(settings_of(lion("")).schedule.learning_rate == 1e-3);
  CHECK(contains(error_of(lion(R"("eps": 1e-6)")), "Lion has no such parameter"));
  CHECK(contains(error_of(lion(""), {"--optim", "adamw_torch"}), "is Lion here, but --optim"));
}

TEST_CASE("Resolve: Lamb updates nothing early", "[config][resolve]") {
  const auto nvme = [](const std::string& more) {
    return fmt::format(
        R"({{"train_batch_size": 4, "optimizer": {{"type": "Lamb"}}, "gradient_clipping": 0,
             "zero_optimization": {{"stage": 3, "offload_optimizer": {{"device": "nvme",
             "nvme_path": "/tmp"{}}}}}}})",
        more);
  };
  const TrainSettings silent = settings_of(nvme(""));
  CHECK_FALSE(silent.zero.offload_optimizer.updates_early);
  CHECK(silent.warnings.empty());
  const TrainSettings asked = settings_of(nvme(R"(, "super_offload": true)"));
  CHECK_FALSE(asked.zero.offload_optimizer.updates_early);
  CHECK(asked.warnings.size() == 1);
}

TEST_CASE("Resolve: gradient clipping", "[config][resolve]") {
  const std::string absent = R"({"train_batch_size": 4})";
  const std::string given = R"({"train_batch_size": 4, "gradient_clipping": 0.25})";
  CHECK(settings_of("").gradient_clipping == 1);
  CHECK(settings_of(absent).gradient_clipping == 1);
  CHECK(settings_of(absent, {"--max_grad_norm", "0"}).gradient_clipping == 0);
  CHECK(settings_of(given).gradient_clipping == 0.25);
  CHECK(settings_of(given, {"--max_grad_norm", "0.25"}).gradient_clipping == 0.25);
}

TEST_CASE("Resolve: batch sizes from both places", "[config][resolve]") {
  struct Row {
    std::string text;
    Arguments flags;
    std::int64_t train, micro, steps;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"train_batch_size": 32})", {}, 32, 16, 1},
      {R"({"train_batch_size": 32})", {"--batch-size", "4"}, 32, 4, 4},
      {R"({"train_batch_size": 32})", {"--gradient_accumulation_steps", "2"}, 32, 8, 2},
      {R"({"train_micro_batch_size_per_gpu": 3})", {}, 6, 3, 1},
      {R"({"gradient_accumulation_steps": 3})", {"--micro-batch-size", "2"}, 12, 2, 3},
      {R"({"zero_optimization": {"stage": 1}})", {"--batch-size", "1"}, 2, 1, 1},
      {R"({"train_batch_size": "auto"})", {}, 16, 8, 1},
      {R"({"train_batch_size": "auto", "gradient_accumulation_steps": 2})", {}, 32, 8, 2},
      {R"({"train_micro_batch_size_per_gpu": "auto"})", {}, 16, 8, 1},
      {R"({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": 2})", {}, 4, 2, 1},
      // Defaults yield to what is given.
      {R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": "auto"})", {}, 12, 6, 1},
      {"", {"--global-batch-size", "12", "--micro-batch-size", "3"}, 12, 3, 2},
      {"", {"--global-batch-size", "12"}, 12, 6, 1},
  }));
  CAPTURE(row.text, row.flags);
  const TrainSettings settings = settings_of(row.text, row.flags);
  CHECK(settings.train_batch_size == row.train);
  CHECK(settings.micro_batch_size == row.micro);
  CHECK(settings.accumulation_steps == row.steps);
}

TEST_CASE("Resolve: the stage auto is taken from the option", "[config][resolve]") {
  const std::string text = R"({"train_batch_size": 4, "zero_optimization": {"stage": "auto"}})";
  CHECK(settings_of(text, {"--zero_stage", "2"}).zero.stage == 2);
  CHECK(error_of(text).ends_with(
      R"(zero_optimization.stage: "auto" needs --zero_stage N; or write the stage here)"));
}

TEST_CASE("Resolve: batch sizes that do not fit", "[config][resolve]") {
  CHECK(contains(error_of(R"({"zero_optimization": {"stage": 1}})"),
                 "Either train_batch_size or train_micro_batch_size_per_gpu needs to be provided, "
                 "here or with --per_device_train_batch_size"));
  CHECK(
      error_of("{\n\"train_batch_size\": 7}") ==
      "ds.json:2:21: Check batch related parameters. train_batch_size is not equal to "
      "train_micro_batch_size_per_gpu * gradient_accumulation_steps * world size: 7 != 3 * 1 * 2; "
      "train_micro_batch_size_per_gpu follows from the others, rounded down; "
      "gradient_accumulation_steps follows from the others, rounded down; the launch has 2 ranks: "
      "set train_batch_size to a multiple of 2, such as 6 or 8");
  CHECK(
      contains(error_of(R"({"train_batch_size": 9, "train_micro_batch_size_per_gpu": "auto"})",
                        {"--per_device_train_batch_size", "2"}),
               "9 != 2 * 2 * 2; train_micro_batch_size_per_gpu 2 is --per_device_train_batch_size; "
               "gradient_accumulation_steps follows from the others, rounded down; the launch has "
               "2 ranks: set train_batch_size to a multiple of 4, such as 8 or 12"));
  CHECK(contains(error_of("", {"--global-batch-size", "7"}),
                 "the launch has 2 ranks: set --global_batch_size to a multiple of 2, such as 6"));
  CHECK(contains(error_of("", {"--global_batch_size", "4", "--batch_size", "8"}),
                 "set --global_batch_size to a multiple of 16, such as 16, or --batch_size to 2"));
  const std::string three = R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 3, )"
                            R"("gradient_accumulation_steps": 4)";
  CHECK(error_of(three + "}")
            .ends_with("the launch has 2 ranks: set train_batch_size to 24, or leave "
                       "gradient_accumulation_steps out"));
  CHECK(error_of(R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 3})") == "no error");
  CHECK(contains(error_of(R"({"train_batch_size": 1})"),
                 "less than gradient_accumulation_steps 1 * world size 2); "));
  CHECK(contains(error_of(R"({"train_batch_size": 1})"),
                 "the launch has 2 ranks: set train_batch_size to a multiple of 2, such as 2"));
}

TEST_CASE("Resolve: batch sizes without a world size", "[config][resolve]") {
  const auto check = [](const std::string& text) {
    return message_of([&] { settings_of(text, {}, {}); });
  };
  CHECK(check(R"({"train_batch_size": 7})") == "no error");
  CHECK(check(R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 4})") == "no error");
  CHECK(check(R"({"gradient_accumulation_steps": 3})") == "no error");
  CHECK(check("{}") == "no error");
  CHECK(contains(check(R"({"train_batch_size": 12, "train_micro_batch_size_per_gpu": 5})"),
                 "for any number of ranks: it is not a multiple of 5"));
  CHECK(contains(check(R"({"train_batch_size": 0})"), "Train batch size: 0"));
}

TEST_CASE("Resolve: a value in both places that disagrees is named with both",
          "[config][resolve]") {
  struct Row {
    std::string text;
    Arguments flags;
    std::string message;
  };
  const std::string adam = R"({"train_batch_size": 4, "optimizer": {"type": "AdamW", "params": )";
  const std::string warm =
      R"({"train_batch_size": 4, "scheduler": {"type": "WarmupLR", "params": )";
  const Row row = GENERATE_COPY(values<Row>({
      {R"({"train_micro_batch_size_per_gpu": 4})",
       {"--per_device_train_batch_size", "8"},
       "ds.json:1:36: train_micro_batch_size_per_gpu: is 4 here, but --per_device_train_batch_size "
       "is 8 on the command line; give one of them, or \"auto\" here"},
      {R"({"train_batch_size": 4})", {"--global-batch-size", "8"}, "--global_batch_size is 8"},
      {R"({"train_batch_size": 4, "gradient_accumulation_steps": 1})",
       {"--gradient-accumulation-steps", "2"},
       "gradient_accumulation_steps: is 1 here, but --gradient_accumulation_steps is 2"},
      {adam + R"({"lr": 0.001}}})",
       {"--lr", "0.01"},
       "optimizer.params.lr: is 0.001 here, but --lr is 0.01"},
      {adam + R"({"betas": [0.8, 0.99]}}})",
       {"--adam_beta1", "0.9"},
       "is 0.8 here, but --adam_beta1"},
      {adam + R"({"betas": [0.8, 0.99]}}})",
       {"--adam_beta2", "0.9"},
       "is 0.99 here, but --adam_beta2"},
      {adam + R"({"eps": 1e-8}}})",
       {"--adam_epsilon", "1e-6"},
       "is 1e-08 here, but --adam_epsilon"},
      {adam + R"({"weight_decay": 0}}})",
       {"--weight_decay", "0.1"},
       "is 0 here, but --weight_decay"},
      {R"({"train_batch_size": 4, "gradient_clipping": 1})",
       {"--max_grad_norm", "2"},
       "gradient_clipping: is 1 here, but --max_grad_norm is 2"},
      {warm + R"({"warmup_max_lr": 0.1}}})",
       {"--lr", "0.01"},
       "scheduler.params.warmup_max_lr: is 0.1 here, but --lr is 0.01"},
      {warm + R"({"warmup_num_steps": 10}}})",
       {"--warmup_steps", "20"},
       "warmup_num_steps: is 10 here, but --warmup_steps is 20"},
      {warm + R"({"warmup_num_steps": 10}}})",
       {"--warmup_ratio", "0.5", "--max_steps", "100"},
       "warmup_num_steps: is 10 here, but --warmup_ratio is 0.5 (50 steps)"},
      {warm + "{}}}",
       {"--lr_scheduler_type", "constant"},
       "scheduler.type: is WarmupLR here, but --lr_scheduler_type is constant on the command line; "
       "give one of them"},
  }));
  CAPTURE(row.text, row.flags);
  const std::string error = error_of(row.text, row.flags);
  CAPTURE(error);
  CHECK(contains(error, row.message));
  CHECK(std::count(error.begin(), error.end(), '\n') == 0);
}

TEST_CASE("Resolve: equal values in both places agree", "[config][resolve]") {
  CHECK(error_of(R"({"train_micro_batch_size_per_gpu": 4, "gradient_clipping": 1,
                     "optimizer": {"type": "Adam", "params": {"lr": 1e-4, "betas": [0.9, 0.95]}}})",
                 {"--batch-size", "4", "--max_grad_norm", "1.0", "--lr", "0.0001", "--adam_beta2",
                  "0.95"}) == "no error");
}

TEST_CASE("Resolve: keys without effect at a stage get a warning", "[config][resolve]") {
  const auto warnings = [](int stage) {
    return settings_of(fmt::format(R"({{"train_batch_size": 4, "zero_optimization": {{"stage": {},
          "reduce_bucket_size": 5e8, "stage3_param_persistence_threshold": 1e5}}}})",
                                   stage))
        .warnings.size();
  };
  CHECK(warnings(0) == 2);
  CHECK(warnings(1) == 2);
  CHECK(warnings(2) == 1);
  CHECK(warnings(3) == 0);
}

TEST_CASE("Resolve: Megatron's sizes become overrides", "[config][resolve]") {
  const TrainSettings settings =
      settings_of("", {"--num-layers", "48", "--hidden-size", "1600", "--num-attention-heads", "16",
                       "--max-position-embeddings", "512", "--seq-length", "256",
                       "--config_overrides", "vocab_size=512", "--train-iters", "5",
                       "--checkpoint-activations", "--model-parallel-size", "1"});
  CHECK(settings.model.config == "gpt2");
  CHECK(settings.model.overrides ==
        "num_hidden_layers=48,hidden_size=1600,num_attention_heads=16,max_position_embeddings=512,"
        "vocab_size=512");
  CHECK(settings.data.block_size == 256);
  CHECK(settings.steps == 5);
  CHECK(settings.gradient_checkpointing);
}

TEST_CASE("Resolve: every value knows its origin", "[config][resolve]") {
  const Resolved result = resolved(
      R"({"train_batch_size": 32, "zero_optimization": {"stage": 3, "reduce_bucket_size": "auto"},
          "optimizer": {"type": "AdamW", "params": {"lr": "auto", "eps": 1e-6}}})",
      {"--lr", "0.1", "--batch-size", "4"}, {.world_size = 2, .hidden = 8});
  CHECK(origin_of(result, "train_batch_size") == "32 file");
  CHECK(origin_of(result, "train_micro_batch_size_per_gpu") == "4 flag --batch_size");
  CHECK(origin_of(result, "gradient_accumulation_steps") == "4 derived");
  CHECK(origin_of(result, "optimizer.params.lr") == "0.1 flag --lr");
  CHECK(origin_of(result, "optimizer.params.eps") == "1e-06 file");
  CHECK(origin_of(result, "optimizer.params.betas") == "[0.9, 0.999] default");
  CHECK(origin_of(result, "zero_optimization.stage") == "3 file");
  CHECK(origin_of(result, "zero_optimization.reduce_bucket_size") == "64 derived");
  CHECK(origin_of(result, "gradient_clipping") == "1 default");
}

TEST_CASE("Resolve: the report is a configuration with origins", "[config][resolve]") {
  const Resolved result = resolved(
      R"({"train_batch_size": 4, "zero_optimization": {"stage": 2, "reduce_scatter": true}})", {},
      {.world_size = 2});
  const auto report = nlohmann::json::parse(report_json(result));
  CHECK(report["effective"]["zero_optimization"]["stage"] == 2);
  CHECK(report["effective"]["train_micro_batch_size_per_gpu"] == 2);
  CHECK(report["origin"]["zero_optimization.stage"] == "file");
  CHECK(report["origin"]["gradient_clipping"] == "default");
  CHECK(report["warnings"].size() == 1);
  // What is shown can be used as a configuration that means the same.
  const std::string again = report["effective"].dump();
  CHECK(resolved(again, {}, {.world_size = 2}).settings.train_batch_size == 4);
}
