#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/config/resolve.h"
#include "runtime/config/schedule_json.h"
#include "tests/config/resolved.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::test::Arguments;
using dstrain::test::contains;
using dstrain::test::error_of;
using dstrain::test::message_of;
using dstrain::test::resolved;
using dstrain::test::settings_of;

namespace {

std::string schedule_of(const std::string& text,
                        const Arguments& flags = {},
                        const Context& context = {.world_size = 2}) {
  return schedule_json(settings_of(text, flags, context).schedule);
}

/// The only warning.
std::string warning_of(const std::string& text, const Arguments& flags = {}) {
  const std::vector<std::string> warnings = settings_of(text, flags).warnings;
  REQUIRE(warnings.size() == 1);
  return warnings.front();
}

std::string with_scheduler(const std::string& type, const std::string& params) {
  return fmt::format(
      R"({{"train_batch_size": 4, "scheduler": {{"type": "{}", "params": {{{}}}}}}})", type,
      params);
}

/// 100 samples in batches of 16: 7 steps an epoch, 21 in all.
constexpr Context known_data{.world_size = 2, .train_samples = 100};

}  // namespace

TEST_CASE("Schedule: without a scheduler section it is Hugging Face's", "[config][schedule]") {
  struct Row {
    Arguments flags;
    std::string schedule;
  };
  const Row row = GENERATE(values<Row>({
      {{}, R"({"type":"linear","warmup_steps":0,"total_steps":10})"},
      {{"--lr_scheduler_type", "constant"}, R"({"type":"constant"})"},
      {{"--lr_scheduler_type", "linear"}, R"({"type":"linear","warmup_steps":0,"total_steps":10})"},
      {{"--lr_scheduler_type", "inverse_sqrt", "--warmup_steps", "3"},
       R"({"type":"inverse_sqrt","warmup_steps":3})"},
      {{"--warmup_steps", "4"}, R"({"type":"linear","warmup_steps":4,"total_steps":10})"},
      {{"--warmup_steps", "0"}, R"({"type":"linear","warmup_steps":0,"total_steps":10})"},
      {{"--warmup_steps", "0.26"}, R"({"type":"linear","warmup_steps":3,"total_steps":10})"},
      {{"--warmup_ratio", "0.26"}, R"({"type":"linear","warmup_steps":3,"total_steps":10})"},
      {{"--warmup_ratio", "1"}, R"({"type":"linear","warmup_steps":10,"total_steps":10})"},
      {{"--warmup_steps", "1"}, R"({"type":"linear","warmup_steps":1,"total_steps":10})"},
      {{"--warmup_ratio", "0.5", "--warmup_steps", "2"},
       R"({"type":"linear","warmup_steps":2,"total_steps":10})"},
      {{"--lr_scheduler_type", "constant_with_warmup", "--warmup_ratio", "0.26"},
       R"({"type":"constant_with_warmup","warmup_steps":3})"},
  }));
  CAPTURE(row.flags);
  Arguments flags = row.flags;
  flags.insert(flags.end(), {"--max_steps", "10"});
  CHECK(schedule_of("", flags) == row.schedule);
}

TEST_CASE("Schedule: empty sections count as not set", "[config][schedule]") {
  const TrainSettings settings =
      settings_of(R"({"train_batch_size": 16, "optimizer": {}, "scheduler": {}})");
  CHECK(schedule_json(settings.schedule) ==
        R"({"type":"linear","warmup_steps":0,"total_steps":"auto"})");
  CHECK_FALSE(settings.optimizer.decays_all);
}

TEST_CASE("Schedule: the epochs of the data give its length", "[config][schedule]") {
  CHECK(schedule_of("", {"--lr_scheduler_type", "cosine", "--warmup_ratio", "0.5"}, known_data) ==
        R"({"type":"cosine","warmup_steps":11,"total_steps":21})");
  CHECK(schedule_of("", {"--dataloader_drop_last"}, known_data) ==
        R"({"type":"linear","warmup_steps":0,"total_steps":18})");
  CHECK(schedule_of(R"({"train_batch_size": 16, "dataloader_drop_last": true})", {}, known_data) ==
        R"({"type":"linear","warmup_steps":0,"total_steps":18})");
  const std::string decay = with_scheduler("WarmupDecayLR", R"("total_num_steps": "auto",
      "warmup_num_steps": "auto", "warmup_max_lr": "auto")");
  const Arguments flags = {"--warmup_steps", "0.1", "--num_train_epochs", "0.5"};
  CHECK(contains(schedule_of(decay, flags, known_data),
                 R"("warmup_num_steps":2,"warmup_type":"log","total_num_steps":13)"));
}

TEST_CASE("Schedule: options without the expected effect get one warning", "[config][schedule]") {
  struct Row {
    std::string text;
    Arguments flags;
    std::string warning;
  };
  const std::string cycle = R"("cycle_min_lr": 0, "cycle_max_lr": 1)";
  const Row row = GENERATE_COPY(values<Row>({
      {"",
       {"--warmup_steps", "10", "--lr_scheduler_type", "constant"},
       "--warmup_steps: has no effect: --lr_scheduler_type is constant"},
      {"",
       {"--warmup_steps", "9", "--warmup_ratio", "0.1", "--lr_scheduler_type", "linear"},
       "--warmup_ratio: has no effect: --warmup_steps counts"},
      {with_scheduler("LRRangeTest", ""), {"--lr", "1"}, "--lr: has no effect: LRRangeTest sets"},
      {with_scheduler("OneCycle", cycle),
       {"--warmup_steps", "1"},
       "--warmup_steps: has no effect: OneCycle sets the rate"},
      {with_scheduler("OneCycle", cycle),
       {"--adam_beta2", "0.9"},
       "cycle_momentum: sets Adam's betas"},
      {with_scheduler("WarmupDecayLR", R"("total_num_steps": 2000)"),
       {},
       "scheduler.params.warmup_max_lr: is not given: the rate rises to DeepSpeed's default, "
       "0.001"},
      {with_scheduler("WarmupCosineLR", R"("total_num_steps": 2000)"),
       {"--max_steps", "5"},
       "scheduler.params.total_num_steps: is 2000, but the run has 5 steps"},
      {with_scheduler("WarmupCosineLR", R"("total_num_steps": 5)"),
       {},
       "scheduler.params.total_num_steps: is 5, less than the 1000 of warmup_num_steps"},
  }));
  CAPTURE(row.text, row.flags);
  const std::string warning = warning_of(row.text, row.flags);
  CAPTURE(warning);
  CHECK(contains(warning, row.warning));
}

TEST_CASE("Schedule: the parameters of DeepSpeed and their defaults", "[config][schedule]") {
  struct Row {
    std::string type;
    std::string params;
    std::string schedule;
  };
  const Row row = GENERATE(values<Row>({
      {"WarmupLR", "",
       R"("warmup_min_lr":0.0,"warmup_max_lr":5e-05,"warmup_num_steps":1000,"warmup_type":"log"})"},
      {"WarmupLR", R"("warmup_num_steps": 0, "warmup_type": "linear", "warmup_max_lr": 2)",
       R"("warmup_min_lr":0.0,"warmup_max_lr":2.0,"warmup_num_steps":2,"warmup_type":"linear"})"},
      {"WarmupLR", R"("warmup_num_steps": 1, "warmup_type": "linear", "warmup_max_lr": 2)",
       R"("warmup_min_lr":0.0,"warmup_max_lr":2.0,"warmup_num_steps":2,"warmup_type":"linear"})"},
      {"WarmupLR", R"("last_batch_iteration": 3)",
       R"("warmup_type":"log","last_batch_iteration":3})"},
      {"WarmupDecayLR", R"("total_num_steps": 9)",
       R"("warmup_max_lr":0.001,"warmup_num_steps":1000,"warmup_type":"log","total_num_steps":9})"},
      {"WarmupDecayLR", R"("total_num_steps": 9, "warmup_max_lr": "auto")",
       R"("warmup_max_lr":5e-05)"},
      {"WarmupCosineLR", R"("total_num_steps": 9)",
       R"("total_num_steps":9,"warmup_min_ratio":0.0,"warmup_num_steps":1000,)"
       R"("cos_min_ratio":0.0001)"},
      {"LRRangeTest", "",
       R"("lr_range_test_min_lr":0.001,"lr_range_test_step_size":2000,)"
       R"("lr_range_test_step_rate":1.0,"lr_range_test_staircase":false})"},
      {"OneCycle", R"("cycle_min_lr": 0.1, "cycle_max_lr": 0.5)",
       R"("cycle_min_lr":0.1,"cycle_max_lr":0.5,"decay_lr_rate":0.0,"cycle_first_step_size":2000,)"
       R"("cycle_second_step_size":2000,"cycle_first_stair_count":0,"cycle_second_stair_count":0,)"
       R"("decay_step_size":0,"cycle_momentum":true,"cycle_min_mom":0.8,"cycle_max_mom":0.9,)"
       R"("decay_mom_rate":0.0})"},
      {"OneCycle",
       R"("cycle_min_lr": 0, "cycle_max_lr": 1, "cycle_first_step_size": 5,
          "cycle_second_stair_count": null, "cycle_first_stair_count": 3, "cycle_momentum": false)",
       R"("cycle_second_step_size":5,"cycle_first_stair_count":3,"cycle_second_stair_count":3,)"
       R"("decay_step_size":0,"cycle_momentum":false})"},
  }));
  CAPTURE(row.type, row.params);
  const std::string schedule = schedule_of(with_scheduler(row.type, row.params));
  CAPTURE(schedule);
  CHECK(contains(schedule, fmt::format(R"({{"type":"{}",)", row.type)));
  CHECK(contains(schedule, row.schedule));
}

TEST_CASE("Schedule: an invalid scheduler is refused with its key", "[config][schedule]") {
  struct Row {
    std::string type;
    std::string params;
    std::string message;
  };
  const Row row = GENERATE(values<Row>({
      {"WarmupDecayLR", "",
       "ds.json:1:74: scheduler.params.total_num_steps: is missing; WarmupDecayLR needs it: give a "
       "number, or \"auto\" for that of the run"},
      {"WarmupCosineLR", "",
       "scheduler.params.total_num_steps: is missing; WarmupCosineLR needs it"},
      {"OneCycle", R"("cycle_min_lr": 1)",
       "scheduler.params.cycle_max_lr: is missing; OneCycle needs it: give a number"},
      {"WarmupLR", R"("warmup_num_steps": -1)", "warmup_num_steps: must be at least 0, got -1"},
      {"WarmupLR", R"("last_batch_iteration": -2)", "must be at least -1, got -2"},
      {"LRRangeTest", R"("lr_range_test_step_size": 0)", "step_size: must be at least 1, got 0"},
      {"OneCycle", R"("cycle_min_lr": 0, "cycle_max_lr": 1, "cycle_max_mom": 1)",
       "cycle_max_mom: must be between 0 and"},
      {"WarmupCosineLR", R"("total_num_steps": 5, "warmup_max_lr": 1)",
       "warmup_max_lr: WarmupCosineLR has no such parameter; WarmupLR, WarmupDecayLR has"},
  }));
  CAPTURE(row.type, row.params);
  const std::string error = error_of(with_scheduler(row.type, row.params));
  CAPTURE(error);
  CHECK(contains(error, row.message));
}

TEST_CASE("Schedule: a momentum that grows to 1 within the run is refused", "[config][schedule]") {
  const std::string cycle = with_scheduler("OneCycle", R"("cycle_min_lr": 0, "cycle_max_lr": 1,
      "cycle_first_step_size": 5, "decay_step_size": 1, "decay_mom_rate": 0.1)");
  // After 10 steps of the cycle 0.9 (1 + 0.1 k): 1.08 at k = 2, which update 13 has.
  CHECK(error_of(cycle, {"--max_steps", "12"}) == "no error");
  CHECK(contains(error_of(cycle, {"--max_steps", "13"}), "decay_mom_rate: lets the momentum grow"));
}

TEST_CASE("Schedule: the option agrees with the scheduler it stands for", "[config][schedule]") {
  const auto error = [](const std::string& type, const std::string& option) {
    return error_of(with_scheduler(type, type == "WarmupLR" ? "" : R"("total_num_steps": 5000)"),
                    {"--lr_scheduler_type", option});
  };
  CHECK(error("WarmupLR", "constant_with_warmup") == "no error");
  CHECK(error("WarmupDecayLR", "linear") == "no error");
  CHECK(contains(error("WarmupLR", "linear"),
                 "scheduler.type: is WarmupLR here, but --lr_scheduler_type is linear"));
  CHECK(contains(error("WarmupCosineLR", "cosine"), "give one of them"));
}

TEST_CASE("Schedule: the styles of Megatron are those of Hugging Face", "[config][schedule]") {
  const auto styled = [](const std::string& style, Arguments flags) {
    flags.insert(flags.end(), {"--lr-decay-style", style, "--max_steps", "10"});
    return schedule_of("", flags);
  };
  CHECK(styled("constant", {"--lr-warmup-iters", "2"}) ==
        R"({"type":"constant_with_warmup","warmup_steps":2})");
  CHECK(styled("linear", {}) == R"({"type":"linear","warmup_steps":0,"total_steps":10})");
  CHECK(styled("cosine", {"--lr-warmup-fraction", "0.1", "--min-lr", "0"}) ==
        R"({"type":"cosine","warmup_steps":1,"total_steps":10})");
  CHECK(styled("inverse-square-root", {"--lr-warmup-iters", "3"}) ==
        R"({"type":"inverse_sqrt","warmup_steps":3})");
}

TEST_CASE("Schedule: Megatron's min_lr needs a matching cosine", "[config][schedule]") {
  const Arguments cosine{"--lr-decay-style", "cosine", "--lr",        "1e-4",
                         "--min-lr",         "1e-5",   "--max_steps", "10"};
  const std::string error = error_of("", cosine);
  CHECK(contains(error,
                 "--min_lr: this schedule does not end at 1e-05; leave it out, or, for a "
                 "cosine that does, put into the configuration \"scheduler\": "));
  // What is said to be put there works, beside the same options.
  const std::string section = error.substr(error.find("\"scheduler\""));
  const std::string text = "{\"train_batch_size\": 4, " + section + "}";
  CHECK(contains(schedule_of(text, cosine), R"("cos_min_ratio":0.1)"));
  CHECK(contains(error_of(with_scheduler("WarmupCosineLR", R"("cos_min_ratio": 0.5)"), cosine),
                 "cos_min_ratio: is 0.5, but --min_lr 1e-05 is 0.1 of the rate; give one of them"));
  CHECK(warning_of("", {"--min-lr", "1e-5", "--lr-decay-style", "constant"}) ==
        "--min_lr: has no effect: the rate stays");
}

TEST_CASE("Schedule: Megatron's lr_decay_iters must match the schedule", "[config][schedule]") {
  const auto refused = [](const std::string& text, Arguments flags) {
    flags.insert(flags.end(), {"--max_steps", "500"});
    return error_of(text, flags);
  };
  CHECK(refused("", {"--lr-decay-iters", "500"}) == "no error");
  CHECK(refused("", {"--lr-decay-iters", "320", "--lr-decay-style", "constant"}) == "no error");
  CHECK(contains(refused("", {"--lr-decay-iters", "320"}),
                 "--lr_decay_iters: is 320, but the schedule ends after 500 steps; leave it out, "
                 "or put into the configuration \"scheduler\": "));
  // What is said to be put there works beside the same options.
  for (const Arguments& flags : {Arguments{"--lr-decay-iters", "320"},
                                 {"--lr-decay-iters", "320", "--lr-decay-style", "linear"},
                                 {"--lr-decay-iters", "320", "--lr-decay-style", "cosine"},
                                 {"--lr-decay-iters", "900", "--lr-decay-style", "cosine", "--lr",
                                  "1e-4", "--min-lr", "1e-5", "--lr-warmup-iters", "9"},
                                 {"--lr-decay-iters", "320", "--lr_scheduler_type", "cosine"}}) {
    CAPTURE(flags);
    const std::string error = refused("", flags);
    const std::string section =
        error.substr(error.find("\"scheduler\""), error.find("}}") + 2 - error.find("\"sch"));
    CHECK(refused("{\"train_batch_size\": 4, " + section + "}", flags) == "no error");
  }
  CHECK(refused("", {"--lr-decay-iters", "320", "--lr_scheduler_type", "polynomial"}) ==
        "--lr_decay_iters: is 320, but the schedule ends after 500 steps; leave it out");
  CHECK(contains(refused("", {"--min-lr", "1e-5", "--lr-decay-style", "linear"}),
                 "for a cosine that does, leave --lr_decay_style out and put into the "));
  const std::string shorter = with_scheduler("WarmupDecayLR", R"("total_num_steps": 320)");
  CHECK(refused(shorter, {"--lr-decay-iters", "320"}) == "no error");
  CHECK(contains(refused(shorter, {"--lr-decay-iters", "320", "--lr-warmup-fraction", "0.01"}),
                 "--lr_warmup_fraction: is a part of --lr_decay_iters, not of the 500 steps of the "
                 "run; give --warmup_steps 4"));
}

TEST_CASE("Schedule: impossible options are refused", "[config][schedule]") {
  CHECK(contains(
      error_of("", {"--warmup_steps", "2.5"}),
      "--warmup_steps: must be a whole number, or below 1 a fraction of all steps, got 2.5"));
  CHECK(contains(error_of("", {"--lr_scheduler_type", "polynomial", "--lr", "1e-7"}),
                 "polynomial ends at the rate 1e-07; the rate 1e-07 must be more"));
  for (const std::string name : {"cosine_with_restarts", "cosine_with_min_lr",
                                 "reduce_lr_on_plateau", "warmup_stable_decay"}) {
    CHECK(contains(error_of("", {"--lr_scheduler_type", name}),
                   "--lr_scheduler_type " + name + ": not implemented; leave it out or set it to"));
  }
}

TEST_CASE("Schedule: values that depend on unknown data stay auto", "[config][schedule]") {
  const std::string text =
      with_scheduler("WarmupDecayLR", R"("total_num_steps": "auto", "warmup_num_steps": "auto",
                          "warmup_max_lr": "auto")");
  const auto effective = [&](const Arguments& flags) {
    return nlohmann::json::parse(
        report_json(resolved(text, flags, {.world_size = 2})))["effective"]["scheduler"]["params"];
  };
  CHECK(effective({"--warmup_ratio", "0.1"})["warmup_num_steps"] == "auto");
  CHECK(effective({"--warmup_ratio", "0.1"})["total_num_steps"] == "auto");
  CHECK(effective({"--warmup_ratio", "0.1", "--max_steps", "50"})["warmup_num_steps"] == 5);
  CHECK(effective({"--max_steps", "50"})["total_num_steps"] == 50);
  CHECK(contains(schedule_of(text, {"--warmup_ratio", "0.1"}),
                 R"("warmup_num_steps":"auto","warmup_type":"log","total_num_steps":"auto"})"));
  CHECK(schedule_of("", {"--warmup_ratio", "0.1"}) ==
        R"({"type":"linear","warmup_steps":"auto","total_steps":"auto"})");
}

TEST_CASE("Schedule: the origin of warmup_max_lr is reported", "[config][schedule]") {
  const auto origin = [](const std::string& type, const std::string& params) {
    const std::string text = with_scheduler(type, params);
    return nlohmann::json::parse(report_json(
        resolved(text, {}, {.world_size = 2})))["origin"]["scheduler.params.warmup_max_lr"];
  };
  CHECK(origin("WarmupLR", "") == "derived");
  CHECK(origin("WarmupLR", R"("warmup_max_lr": 1)") == "file");
  CHECK(origin("WarmupDecayLR", R"("total_num_steps": 1)") == "default");
  CHECK(origin("WarmupDecayLR", R"("total_num_steps": 1, "warmup_max_lr": "auto")") == "derived");
}

TEST_CASE("Schedule: the reported section means the same", "[config][schedule]") {
  const std::string text = with_scheduler("OneCycle", R"("cycle_min_lr": 1e-4, "cycle_max_lr": 1e-3,
      "cycle_first_stair_count": 2, "last_batch_iteration": 4)");
  const auto report = nlohmann::json::parse(report_json(resolved(text, {}, {.world_size = 2})));
  CHECK(report["schedule"]["type"] == "OneCycle");
  CHECK(report["origin"]["scheduler.params.cycle_first_stair_count"] == "file");
  CHECK(schedule_of(report["effective"].dump()) == schedule_of(text));
  const Arguments cosine = {"--lr_scheduler_type", "cosine", "--max_steps", "7"};
  const auto options = nlohmann::json::parse(report_json(resolved("{}", cosine, {})));
  CHECK(options["schedule"]["total_steps"] == 7);
}
