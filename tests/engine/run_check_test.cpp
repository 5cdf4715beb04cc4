// Whether a run goes on with the data that it began with.
#include "runtime/engine/run_check.h"

#include <limits>

#include <fmt/format.h>

#include "tests/support/catch.h"

using dstrain::engine::data_differences;
using dstrain::engine::parse_trainer_state;
using dstrain::engine::TrainerState;
using Lines = std::vector<std::string>;

namespace {

/// A run over text: 100 samples of 5000 bytes.
TrainerState text_run(const std::string& encoder, const std::string& mixture = "") {
  TrainerState state;
  state.train_batch_size = 4;
  state.block_size = 32;
  state.data = {.file = "a.txt",
                .bytes = 5000,
                .digest = "0123",
                .samples = 100,
                .mixture = mixture,
                .text_encoder = encoder,
                .split = std::vector<double>(),
                .max_samples = 0};
  return state;
}

Lines differences(const TrainerState& saved, const TrainerState& run) {
  Lines lines;
  for (const auto& found : data_differences(saved, run, "out/checkpoint-3")) {
    lines.push_back(fmt::format("{}: {}", found.text, found.remedy));
  }
  return lines;
}

}  // namespace

TEST_CASE("RunCheck: another tokenizer is refused with the remedy", "[engine][resume]") {
  CHECK(differences(text_run("byte"), text_run("byte")).empty());
  CHECK(differences(text_run("c0de"), text_run("c0de")).empty());
  CHECK(differences(text_run("c0de"), text_run("byte")) ==
        Lines{"the tokenizer is the one whose files have the digest c0de in the checkpoint and "
              "byte now: set --tokenizer out/checkpoint-3"});
  CHECK(differences(text_run("byte"), text_run("c0de")) ==
        Lines{"the tokenizer is byte in the checkpoint and the one whose files have the digest "
              "c0de now: set --tokenizer byte"});
  // Other tokens are another number of samples, of which nothing need be said.
  TrainerState other = text_run("c0de");
  other.data.samples = 70;
  CHECK(differences(text_run("byte"), other).size() == 1);
}

TEST_CASE("RunCheck: the way back to the batch of the checkpoint works as typed",
          "[engine][resume]") {
  struct Row {
    std::int64_t saved;
    std::int64_t ranks;
    std::int64_t micro;
    std::int64_t steps;
    dstrain::config::BatchOrigins origins;
    std::string remedy;
  };
  const std::string flag = "flag ";
  const Row row = GENERATE_COPY(values<Row>({
      {4,
       2,
       8,
       1,
       {"derived", "default", "default"},
       "set --global_batch_size 4 --per_device_train_batch_size 2"},
      {4,
       2,
       8,
       2,
       {"derived", flag + "--batch_size", flag + "--gradient_accumulation_steps"},
       "set --global_batch_size 4 --batch_size 2 --gradient_accumulation_steps 1"},
      {16, 2, 4, 1, {"derived", "default", "default"}, "set --gradient_accumulation_steps 2"},
      {4,
       2,
       4,
       1,
       {flag + "--global_batch_size", "derived", "derived"},
       "set --global_batch_size 4"},
      {4,
       2,
       4,
       1,
       {flag + "--global_batch_size", flag + "--batch_size", "derived"},
       "set --global_batch_size 4 --batch_size 2"},
      {12,
       2,
       2,
       4,
       {"file", "derived", flag + "--gradient_accumulation_steps"},
       "set --gradient_accumulation_steps 1, and train_batch_size 12 in the --deepspeed file"},
      {4,
       2,
       4,
       1,
       {"file", "file", "derived"},
       "set train_batch_size 4 and train_micro_batch_size_per_gpu 2 in the --deepspeed file"},
      {4,
       1,
       2,
       1,
       {"derived", "file", "file"},
       "set gradient_accumulation_steps 2 in the --deepspeed file"},
      {4,
       3,
       2,
       1,
       {"derived", "default", "default"},
       "3 ranks cannot share a batch of 4 evenly; launch 2 ranks"},
      {6,
       2,
       3,
       2,
       {"elasticity", "elasticity", "elasticity"},
       "replace the section elasticity of the --deepspeed file by train_batch_size 6, "
       "train_micro_batch_size_per_gpu 3, gradient_accumulation_steps 1"},
  }));
  TrainerState saved = text_run("byte");
  saved.train_batch_size = row.saved;
  TrainerState run = text_run("byte");
  run.train_batch_size = row.ranks * row.micro * row.steps;
  run.ranks = row.ranks;
  run.micro_batch_size = row.micro;
  run.batch_origins = row.origins;
  CHECK(differences(saved, run) ==
        Lines{fmt::format("train_batch_size is {} in the checkpoint and {} now: {}", row.saved,
                          run.train_batch_size, row.remedy)});
}

TEST_CASE("RunCheck: other weights are refused", "[engine][resume]") {
  TrainerState even = text_run("byte", "50 of samples 0 to 50, 50 of samples 0 to 50");
  even.data.file = "0.5 a 0.5 b";
  const TrainerState uneven = text_run("byte", "75 of samples 0 to 50, 50 of samples 0 to 50");
  CHECK(differences(even, even).empty());
  CHECK(differences(even, uneven) ==
        Lines{"the mixture of the training data is 50 of samples 0 to 50, 50 of samples 0 to 50 in "
              "the checkpoint and 75 of samples 0 to 50, 50 of samples 0 to 50 now: give the data "
              "that the run began with (0.5 a 0.5 b)"});
  CHECK(differences(text_run("byte"), even)
            .front()
            .starts_with(
                "the mixture of the training data is no mixture in the checkpoint and 50 of"));
  CHECK(differences(even, text_run("byte")).size() == 1);
}

TEST_CASE("RunCheck: another dataloader_drop_last is refused if it moves steps",
          "[engine][resume]") {
  TrainerState keeps = text_run("byte");
  TrainerState drops = keeps;
  drops.drop_last = true;
  CHECK(differences(drops, keeps).empty());  // 25 batches of 4 are all of them
  for (TrainerState* const run : {&keeps, &drops}) run->data.samples = 101;
  CHECK(differences(keeps, keeps).empty());
  CHECK(differences(drops, keeps) ==
        Lines{"dataloader_drop_last is true in the checkpoint and false now: set "
              "--dataloader_drop_last true, or, if the --deepspeed file has the key, "
              "dataloader_drop_last true there"});
  CHECK(differences(keeps, drops).size() == 1);
  CHECK(differences(parse_trainer_state(to_text(drops), "s"), keeps).size() == 1);
  CHECK(differences(parse_trainer_state(to_text(keeps), "s"), keeps).empty());
}

TEST_CASE("TrainerState: losses that were not logged yet are kept exactly", "[engine]") {
  TrainerState run = text_run("byte");
  run.unlogged_loss.add(0.1);
  run.unlogged_loss.add(std::numeric_limits<double>::quiet_NaN());
  run.unlogged_loss.add(1.0 / 3);
  const TrainerState again = parse_trainer_state(to_text(run), "trainer_state.json");
  CHECK(again.unlogged_loss.steps == 2);
  CHECK(again.unlogged_loss.sum == 0.1 + 1.0 / 3);
  CHECK(again.unlogged_loss.value_or(0) == (0.1 + 1.0 / 3) / 2);
  CHECK(TrainerState{}.unlogged_loss.value_or(7) == 7);
}

TEST_CASE("RunCheck: settings that change the samples of the same data are named",
          "[engine][resume]") {
  TrainerState saved = text_run("byte");
  saved.data.packing = true;
  TrainerState run = saved;
  run.data.packing = false;
  run.data.samples = 7;
  CHECK(differences(saved, run) ==
        Lines{"packing is true in the checkpoint and false now: set --packing true"});

  run = saved;
  run.data.packing.reset();
  run.data.samples = 7;
  CHECK(differences(saved, run) ==
        Lines{"the training data's kind is JSON lines in the checkpoint and a stream of text or "
              "tokens now: give the file the ending that it had, a.txt"});
  CHECK(differences(run, saved).size() == 1);

  run = saved;
  run.data.record_options = "";
  run.data.samples = 7;
  saved.data.record_options = R"({"text_column":"body"})";
  CHECK(differences(saved, run) ==
        Lines{"how records are read is {\"text_column\":\"body\"} in the checkpoint and the "
              "defaults now: give the --text_column and --role_names of the run"});
  saved.data.record_options.reset();

  run = saved;
  run.data.split = {949, 50, 1};
  run.data.samples = 95;
  CHECK(differences(saved, run) ==
        Lines{"split is none in the checkpoint and 949,50,1 now: leave out --split"});
  CHECK(differences(run, saved) ==
        Lines{"split is 949,50,1 in the checkpoint and none now: set --split 949,50,1"});
  TrainerState other_rest = run;
  other_rest.data.split = {949, 51, 0};
  CHECK(differences(run, other_rest).empty());

  run = saved;
  run.data.samples = 30;
  run.data.max_samples = 30;
  CHECK(differences(saved, run) == Lines{"the number of samples is 100 in the checkpoint and 30 "
                                         "now: leave out --max_train_samples"});
  CHECK(differences(run, saved) == Lines{"the number of samples is 30 in the checkpoint and 100 "
                                         "now: set --max_train_samples 30"});
}

TEST_CASE("RunCheck: other contents of the same size are refused", "[engine][resume]") {
  const TrainerState saved = text_run("byte");
  TrainerState run = saved;
  run.data.digest = "4567";
  run.data.samples = 99;
  CHECK(differences(saved, run) ==
        Lines{"the digest of the training data is 0123 in the checkpoint and 4567 now: give the "
              "data that the run began with (a.txt)"});
  run = saved;
  run.data.file = "moved.txt";
  CHECK(differences(saved, run).empty());
}

TEST_CASE("RunCheck: an older state gets no remedy that would train on other data",
          "[engine][resume]") {
  TrainerState saved = text_run("byte");
  saved.data.digest.clear();
  saved.data.split.reset();
  saved.data.max_samples.reset();
  TrainerState run = text_run("byte");
  run.data.packing = false;
  CHECK(differences(saved, run).empty());
  run.data.samples = 7;
  CHECK(differences(saved, run) ==
        Lines{"the number of samples is 100 in the checkpoint and 7 now: give the --packing, "
              "--split and --max_train_samples of the run"});
}

TEST_CASE("TrainerState: the description of the data survives a round trip", "[engine]") {
  TrainerState run = text_run("byte");
  run.data.packing = false;
  run.data.record_options = "a";
  run.data.split = {0.9, 0.1};
  run.data.max_samples = 12;
  run.held_out = "b.txt";
  run.held_out_content = "89ab; packing false";
  const TrainerState again = parse_trainer_state(to_text(run), "trainer_state.json");
  CHECK(again.data.digest == "0123");
  CHECK(again.data.packing == false);
  CHECK(again.data.record_options == "a");
  CHECK(again.data.split == std::vector<double>{0.9, 0.1});
  CHECK(again.data.max_samples == 12);
  CHECK(dstrain::engine::same_held_out(run, again));
  TrainerState other = run;
  other.held_out_content = "cdef; packing false";
  CHECK_FALSE(dstrain::engine::same_held_out(run, other));
  other.held_out_content.clear();  // of an older state
  CHECK(dstrain::engine::same_held_out(run, other));
}

TEST_CASE("TrainerState: batches and updates and optimizer steps are counted separately",
          "[engine]") {
  TrainerState run = text_run("byte");
  run.global_step = 9;
  run.updates = 7;
  run.optimizer_step = 5;
  run.loads_best = true;
  const TrainerState again = parse_trainer_state(to_text(run), "trainer_state.json");
  CHECK(again.global_step == 9);
  CHECK(again.updates == 7);
  CHECK(again.optimizer_step == 5);
  CHECK(again.loads_best);
}

TEST_CASE("TrainerState: changes of the arithmetic are reported but not another rate",
          "[engine][resume]") {
  using dstrain::engine::rule_changes;
  TrainerState run = text_run("byte");
  run.optimizer = R"({"type": "AdamW", "lr": 0.1, "betas": [0.9, 0.99], "weight_decay": 0.1})";
  run.description = R"({"model": {"name": "gpt2"}, "dtype": "fp32", "world_size": 2})";
  run.gradient_clipping = 1;
  TrainerState saved = parse_trainer_state(dstrain::engine::to_text(run), "state.json");
  CHECK(rule_changes(saved, run).empty());
  run.description = R"({"model": {"name": "gpt2"}, "dtype": "fp32", "world_size": 3})";
  run.optimizer = R"({"type": "AdamW", "lr": 0.2, "betas": [0.9, 0.99], "weight_decay": 0.1})";
  CHECK(rule_changes(saved, run).empty());
  run.optimizer = R"({"type": "Adam", "lr": 0.1, "betas": [0.9, 0.95], "weight_decay": 0})";
  run.description = R"({"dtype": "bf16"})";
  run.gradient_clipping = 0.5;
  CHECK(rule_changes(saved, run) == Lines{"betas [0.9,0.95] (was [0.9,0.99])",
                                          "weight_decay 0 (was 0.1)", "optimizer Adam (was AdamW)",
                                          "gradient_clipping 0.5 (was 1.0)",
                                          "precision bf16 (was fp32)"});
  saved.optimizer = "{}";
  saved.description = "{}";
  saved.gradient_clipping.reset();
  CHECK(rule_changes(saved, run).empty());
}

TEST_CASE("TrainerState: a restart of the data is stored in a newer version", "[engine][resume]") {
  TrainerState run = text_run("byte");
  CHECK_THAT(dstrain::engine::to_text(run), Catch::Matchers::ContainsSubstring("\"version\": 2,"));
  run.consumed_samples = 80;
  run.data_start = {.step = 7, .samples = 50, .tokens = 1600};
  const std::string text = dstrain::engine::to_text(run);
  CHECK_THAT(text, Catch::Matchers::ContainsSubstring("\"version\": 3,"));
  const TrainerState again = parse_trainer_state(text, "state.json");
  CHECK(again.consumed_samples == 80);
  CHECK(again.data_start.step == 7);
  CHECK(again.data_start.samples == 50);
  CHECK(again.data_start.tokens == 1600);
}

TEST_CASE("RunCheck: another batch and context and order are reported", "[engine][resume]") {
  const TrainerState saved = text_run("byte");
  TrainerState run = saved;
  run.train_batch_size = 8;
  run.block_size = 16;
  run.data_seed = 3;
  const Lines found = differences(saved, run);
  REQUIRE(found.size() == 3);
  CHECK_THAT(found[0],
             Catch::Matchers::StartsWith("train_batch_size is 4 in the checkpoint and 8"));
  CHECK(found[1] == "block_size is 32 in the checkpoint and 16 now: set --block_size 32");
  CHECK_THAT(found[2], Catch::Matchers::EndsWith("set --data_seed 0"));
}

TEST_CASE("TrainerState: a part that is not an object is named", "[engine][resume]") {
  const char* const part = GENERATE("optimizer", "scheduler", "client_state");
  const char* const value = GENERATE("null", "[1]", "\"text\"");
  const std::string text = fmt::format(
      R"({{"version": 1, "global_step": 3, "max_steps": 9, "epoch": 0.1, "train_batch_size": 4,
           "block_size": 32, "rng": {{"seed": 0}}, "{}": {},
           "data": {{"train_file": "a", "bytes": 5, "samples": 1, "shuffle": true}}}})",
      part, value);
  CHECK_THROWS_WITH(
      parse_trainer_state(text, "trainer_state.json"),
      Catch::Matchers::ContainsSubstring(fmt::format("trainer_state.json: {} is no object", part)));
}

TEST_CASE("TrainerState: a member of the wrong type is reported in plain words",
          "[engine][resume]") {
  CHECK_THROWS_WITH(parse_trainer_state(R"({"version": "two"})", "trainer_state.json"),
                    "trainer_state.json: type must be number, but is string");
}

TEST_CASE("TrainerState: a file whose name is no UTF-8 is saved all the same", "[engine][resume]") {
  TrainerState run = text_run("c0de");
  run.data.file = "data\xff.txt";
  CHECK(parse_trainer_state(to_text(run), "trainer_state.json").data.file == "data\uFFFD.txt");
}

TEST_CASE("RunCheck: a state of version 1 without newer members can be resumed",
          "[engine][resume]") {
  const TrainerState run = text_run("c0de");
  const TrainerState old = parse_trainer_state(R"({"version": 1, "global_step": 3, "max_steps": 9,
      "epoch": 0.1, "train_batch_size": 4, "block_size": 32, "rng": {"seed": 0},
      "data": {"train_file": "a.txt", "bytes": 5000, "samples": 100, "shuffle": true}})",
                                               "trainer_state.json");
  CHECK(old.data.text_encoder.empty());
  CHECK(old.updates == 3);
  CHECK(old.optimizer_step == 3);
  CHECK(old.drop_last);
  CHECK_FALSE(old.loads_best);
  CHECK(differences(old, run).empty());
  const TrainerState again = parse_trainer_state(to_text(run), "trainer_state.json");
  CHECK(again.data.text_encoder == "c0de");
  TrainerState mixed = run;
  mixed.data.mixture = "all";
  CHECK(parse_trainer_state(to_text(mixed), "trainer_state.json").data.mixture == "all");
  CHECK(differences(again, text_run("f00d")).size() == 1);
}
