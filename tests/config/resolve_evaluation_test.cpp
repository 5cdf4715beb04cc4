#include "runtime/config/resolve.h"
#include "tests/config/resolved.h"
#include "tests/config/support.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::test::adam;
using dstrain::test::contains;
using dstrain::test::message_of;
using Arguments = std::vector<std::string>;
using Unit = Cadence::Unit;

namespace {

/// Of an epoch of 100 steps.
TrainSettings evaluated_settings(const Arguments& flags, const std::string& file = "") {
  const DsConfig config = file.empty() ? DsConfig() : DsConfig::parse(file, "ds.json");
  Arguments all{"--num_train_epochs", "2"};
  all.insert(all.end(), flags.begin(), flags.end());
  return resolve_config(read_train_flags(all), config, {.world_size = 1, .train_samples = 800})
      .settings;
}

bool operator==(const Cadence& a, const Cadence& b) {
  return a.unit == b.unit && a.steps == b.steps;
}

}  // namespace

TEST_CASE("Resolve: when a run evaluates", "[config][resolve]") {
  struct Row {
    Arguments flags;
    Cadence cadence;
  };
  const Row row = GENERATE(values<Row>({
      {{}, {}},
      {{"--eval_steps", "7"}, {Unit::steps, 7}},
      {{"--eval_strategy", "steps"}, {Unit::steps, 10}},
      {{"--eval_strategy", "steps", "--logging_steps", "3"}, {Unit::steps, 3}},
      {{"--eval_strategy", "steps", "--eval_steps", "0.25"}, {Unit::steps, 50}},
      {{"--eval_strategy", "steps", "--eval_steps", "0.25", "--max_steps", "5"}, {Unit::steps, 2}},
      {{"--eval_strategy", "epoch", "--eval_steps", "7"}, {Unit::epochs, 0}},
      {{"--eval_strategy", "no", "--eval_steps", "7"}, {}},
  }));
  CAPTURE(row.flags);
  CHECK((evaluated_settings(row.flags).evaluation.cadence == row.cadence));
}

TEST_CASE("Resolve: when a run saves and logs", "[config][resolve]") {
  CHECK((evaluated_settings({}).checkpoint.cadence == Cadence{Unit::steps, 500}));
  CHECK((evaluated_settings({"--save_strategy", "no"}).checkpoint.cadence == Cadence{}));
  CHECK((evaluated_settings({"--save_steps", "0"}).checkpoint.cadence == Cadence{}));
  CHECK((evaluated_settings({"--save_interval", "0.1"}).checkpoint.cadence ==
         Cadence{Unit::steps, 20}));
  CHECK((evaluated_settings({"--save_strategy", "epoch"}).checkpoint.cadence ==
         Cadence{Unit::epochs}));
  CHECK(evaluated_settings({"--save_strategy", "best"}).checkpoint.only_better);
  CHECK_FALSE(evaluated_settings({"--load_best_model_at_end", "--eval_strategy", "epoch",
                                  "--save_strategy", "epoch"})
                  .checkpoint.only_better);
  CHECK(evaluated_settings({"--save_strategy", "best"}).evaluation.tracks_best);
  CHECK((evaluated_settings({}).output.logging == Cadence{Unit::steps, 10}));
  CHECK((evaluated_settings({"--log-interval", "1"}).output.logging == Cadence{Unit::steps, 1}));
  CHECK((evaluated_settings({"--logging_strategy", "epoch"}).output.logging ==
         Cadence{Unit::epochs}));
  CHECK((evaluated_settings({"--logging_strategy", "no"}).output.logging == Cadence{}));
}

TEST_CASE("Resolve: batches of evaluation are those of training unless given",
          "[config][resolve]") {
  CHECK(evaluated_settings({"--batch-size", "3"}).evaluation.batch_size == 3);
  const Arguments typed{"--per_device_eval_batch_size", "5"};
  CHECK(evaluated_settings(typed).evaluation.batch_size == 8);  // nothing is evaluated
  CHECK(evaluated_settings({"--per_device_eval_batch_size", "5", "--validation_file", "v"})
            .evaluation.batch_size == 5);
}

TEST_CASE("Resolve: options set the stage and node-local output", "[config][resolve]") {
  const std::string stage2 = R"({"train_batch_size": 8, "zero_optimization": {"stage": 2}})";
  const std::string shared =
      R"({"train_batch_size": 8, "checkpoint": {"use_node_local_storage": false}})";
  CHECK(evaluated_settings({"--zero-stage", "3"}).zero.stage == 3);
  CHECK(evaluated_settings({"--zero-stage", "2"}, stage2).zero.stage == 2);
  CHECK(evaluated_settings({"--zero-stage", "1"}, R"({"train_batch_size": 8})").zero.stage == 1);
  CHECK(contains(message_of([&] {
                   evaluated_settings({"--zero-stage", "1"}, stage2);
                 }),
                 "zero_optimization.stage: is 2 here, but --zero_stage is 1 on the command line"));
  CHECK(evaluated_settings({"--save_on_each_node"}).checkpoint.node_local);
  CHECK(contains(
      message_of([&] { evaluated_settings({"--save_on_each_node"}, shared); }),
      "checkpoint.use_node_local_storage: is false here, but --save_on_each_node is true"));
}

TEST_CASE("Resolve: a fraction of an unknown number of steps is one step", "[config][resolve]") {
  const auto saving = [](const Arguments& flags, std::int64_t train_samples) {
    return resolve_config(read_train_flags(flags), DsConfig(),
                          {.world_size = 1, .train_samples = train_samples})
        .settings.checkpoint.cadence;
  };
  CHECK((saving({"--save_steps", "0.1"}, 0) == Cadence{Unit::steps, 1}));
  CHECK((saving({"--save_steps", "0.1", "--max_steps", "7"}, 0) == Cadence{Unit::steps, 1}));
  CHECK((saving({"--save_steps", "0.1", "--max_steps", "11"}, 0) == Cadence{Unit::steps, 2}));
  CHECK((saving({"--save_steps", "1"}, 0) == Cadence{Unit::steps, 1}));
}

TEST_CASE("Resolve: node-local output excludes a checkpoint limit", "[config][resolve]") {
  const std::string own =
      R"({"train_batch_size": 8, "checkpoint": {"use_node_local_storage": true}})";
  const std::string refusal =
      "checkpoint.use_node_local_storage: excludes --save_total_limit, because no node sees "
      "whether a checkpoint is whole on all nodes; leave out one of them";
  const auto error = [](const Arguments& flags, const std::string& file) {
    return message_of([&] { evaluated_settings(flags, file); });
  };
  CHECK(evaluated_settings({}, own).checkpoint.node_local);
  CHECK(evaluated_settings({"--save_total_limit", "0"}, own).checkpoint.node_local);
  CHECK(evaluated_settings({"--save_total_limit", "1"}).checkpoint.save_total_limit == 1);
  CHECK(contains(error({"--save_total_limit", "1"}, own), refusal));
  CHECK(contains(error({"--save_total_limit", "1", "--save_on_each_node"}, ""), refusal));
}

TEST_CASE("Resolve: where a run resumes and how long it is", "[config][resolve]") {
  const auto from = [](const std::string& word) {
    return evaluated_settings({"--resume_from_checkpoint", word}).checkpoint.resume_from;
  };
  CHECK(from("true") == "latest");
  CHECK(from("latest") == "latest");
  CHECK(from("false").empty());
  CHECK(from("runs/a") == "runs/a");
  CHECK(evaluated_settings({}).steps == 200);
  CHECK(evaluated_settings({"--max_steps", "-1"}).steps == 200);
  CHECK(evaluated_settings({"--max_steps", "1"}).steps == 1);
}

TEST_CASE("Resolve: edge cases of files and options", "[config][resolve]") {
  const auto with = [](const std::string& section) {
    return R"({"train_batch_size": 8, )" + section + "}";
  };
  const auto error = [](const Arguments& flags, const std::string& file) {
    return message_of([&] { evaluated_settings(flags, file); });
  };
  CHECK(evaluated_settings({}).steps_per_print == 0);
  CHECK(evaluated_settings({}, with(R"("steps_per_print": 7)")).steps_per_print == 7);
  CHECK_FALSE(evaluated_settings({}, with(R"("steps_per_print": 7)")).prints_logged_steps);
  CHECK(evaluated_settings({"--logging_steps", "2"}, with(R"("steps_per_print": 7)"))
            .prints_logged_steps);
  CHECK(evaluated_settings({"--do_train"}).trains);
  CHECK_FALSE(evaluated_settings({"--do_eval", "--validation_file", "v"}).trains);
  const Arguments random{"--do_eval", "--validation_file", "v", "--config_name", "gpt2"};
  CHECK(contains(fmt::format("{}", fmt::join(evaluated_settings(random).warnings, "\n")),
                 "the weights that are evaluated are random"));
  const TrainSettings evaluates = evaluated_settings(
      {"--do_eval", "--validation_file", "v", "--profile", "p.json", "--tune_matmuls"});
  CHECK(evaluates.output.profile.empty());
  CHECK_FALSE(evaluates.tune_matmuls);
  for (const std::string flag : {"--profile", "--tune_matmuls"}) {
    CHECK(contains(fmt::format("{}", fmt::join(evaluates.warnings, "\n")),
                   flag + ": has no effect: no step is taken"));
  }
  CHECK(evaluated_settings({"--num_train_epochs", "5e18"}).steps == std::int64_t{1} << 53);
  CHECK(evaluated_settings({"--config_name", "gpt2-medium", "--num-layers", "2"}).model.config ==
        "gpt2-medium");
  CHECK(contains(error({}, with(R"("aio": {"block_size": 4608})")),
                 "aio.block_size: must be a multiple of 4096, got 4608"));
  CHECK(contains(error({"--optim", "adamw_torch"},
                       with(R"("optimizer": {"type": "Adam", "params": {"adam_w_mode": false}})")),
                 "optimizer.params.adam_w_mode: is false here, but --optim is adamw_torch"));
  const TrainSettings pinned =
      evaluated_settings({}, with(R"("zero_optimization": {"stage": 1, "cpu_offload": true,
                                        "cpu_offload_use_pin_memory": false})"));
  CHECK(pinned.zero.offload_optimizer.pin_memory_given);
  // Only two ranks fit, and nobody knows how many there are.
  const DsConfig config = DsConfig::parse(
      with(R"("train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1)"), "ds.json");
  const Context unknown{.train_samples = 800};
  CHECK(resolve_config(read_train_flags({}), config, unknown).settings.train_batch_size == 0);
}

TEST_CASE("Resolve: shuffling has the seed of the run or its own", "[config][resolve]") {
  CHECK(evaluated_settings({}).data.seed == 42);
  CHECK(evaluated_settings({"--seed", "7"}).data.seed == 7);
  CHECK(evaluated_settings({"--seed", "7", "--data_seed", "0"}).data.seed == 0);
  CHECK(evaluated_settings({"--data_seed", "9"}).seed == 42);
}

TEST_CASE("Resolve: inference drops keys for training with one warning", "[config][resolve]") {
  TrainOptions options = read_train_flags({});
  options.inference = true;
  options.do_eval.value = true;
  options.deepspeed = {
      R"({"train_batch_size": 3, "bf16": {"enabled": true, "immediate_grad_update": true},
    "optimizer": {"type": "Lion", "params": {"lr": 1}},
    "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"},
                          "offload_optimizer": {"device": "cpu"}}})",
      "--deepspeed"};
  const TrainSettings settings = resolve(options, {.world_size = 2, .hidden = 64}).settings;
  CHECK(settings.zero.stage == 3);
  CHECK(settings.zero.offload_param.device == OffloadSettings::Device::cpu);
  CHECK(settings.zero.offload_optimizer.device == OffloadSettings::Device::none);
  CHECK(settings.dtype == dstrain::DType::bf16);
  int warnings = 0;
  for (const std::string& warning : settings.warnings) {
    warnings += contains(warning,
                         "nothing is trained, so these have no effect: bf16.immediate_grad_update, "
                         "optimizer, train_batch_size, zero_optimization.offload_optimizer")
                    ? 1
                    : 0;
  }
  CHECK(warnings == 1);
  options.inference = false;
  CHECK(!message_of([&] { resolve(options, {.world_size = 2, .hidden = 64}); }).empty());
}

TEST_CASE("Resolve: Megatron's names", "[config][resolve]") {
  const TrainSettings settings = evaluated_settings(
      {"--train-data", "t", "--valid-data", "v", "--clip-grad", "0.5", "--save", "o",
       "--deepspeed_activation_checkpointing", "--tile-factor", "4", "--adam-beta1", "0.8",
       "--adam-eps", "1e-6", "--eval-interval", "5", "--lr-decay-style", "constant"});
  CHECK(settings.data.train_files == std::vector<DataFile>{{"t"}});
  CHECK(settings.data.validation_files == std::vector<DataFile>{{"v"}});
  CHECK(settings.gradient_clipping == 0.5);
  CHECK(settings.output.directory == "o");
  CHECK(settings.gradient_checkpointing);
  CHECK(settings.model.in_splits == 4);
  CHECK(adam(settings).betas.beta1 == 0.8);
  CHECK(adam(settings).epsilon == 1e-6);
  CHECK((settings.evaluation.cadence == Cadence{Unit::steps, 5}));
  CHECK(settings.warnings.empty());
  CHECK(evaluated_settings({"--split", "949,50,1"}).data.split == std::vector<double>{949, 50, 1});
  CHECK(evaluated_settings({"--distributed-backend", "nccl"}).warnings.size() == 1);
}
