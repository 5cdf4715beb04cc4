// Runs that are cut and gone on with: the same bits as without the cut.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <span>

#include <fmt/format.h>

#include "runtime/checkpoint/manifest_text.h"
#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/newer_checkpoint.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using test::results_of;
using test::ResumableRun;

namespace {

struct Row {
  ResumableRun run;
  std::vector<int> cuts;
};

std::vector<Row> rows() {
  std::vector<Row> rows;
  for (int index = 0; index < 16; ++index) {
    ResumableRun run;
    run.stage = index % 4;
    run.bf16 = index / 4 % 2 != 0;
    run.in_16_bits = run.bf16 && index % 2 != 0;
    if (index % 6 == 5) run.optimizer = "Lamb";
    if (index % 6 == 1) run.optimizer = "Lion";
    if (!run.bf16 && index % 3 != 0) {  // the first steps overflow, and the hysteresis counts
      run.fp16 = {{"enabled", true}, {"initial_scale_power", 24}, {"hysteresis", 3}};
    }
    run.micro_batch = index / 8 == 0 ? 0 : 3;
    run.checkpointed_activations = index % 3 == 0;
    run.ranks = index % 5 == 4 ? 3 : index % 7 == 6 ? 1 : 2;
    if (run.ranks == 3 && run.micro_batch > 0) run.micro_batch = 2;
    // Before, at and behind the end of an epoch, which has eleven steps.
    const int first = 1 + index * 5 % 10;
    rows.push_back({run, {first, std::max(first + 1, 10 + index % 3)}});
  }
  return rows;
}

/// Changes a text in a file of a checkpoint, and its manifest to fit.
void replace_sealed(const std::filesystem::path& directory,
                    const std::string& file,
                    const std::string& from,
                    const std::string& to) {
  std::string text = test::read_bytes(directory / file);
  REQUIRE_THAT(text, ContainsSubstring(from));
  text.replace(text.find(from), from.size(), to);
  std::ofstream(directory / file, std::ios::binary) << text;
  const std::string place = directory / checkpoint::manifest_name;
  checkpoint::Manifest manifest = checkpoint::parse_manifest(test::read_bytes(place), place);
  for (checkpoint::FileRecord& record : manifest.files) {
    if (record.path != file) continue;
    checkpoint::ChunkHasher hasher;
    hasher.add(std::as_bytes(std::span(text)));
    record = {file, std::ssize(text), hasher.finish()};
  }
  std::ofstream(place, std::ios::binary) << checkpoint::to_text(manifest);
}

}  // namespace

TEST_CASE("Resume: a run cut twice has the bits of one that was not", "[e2e][resume]") {
  const Row row = GENERATE(from_range(rows()));
  constexpr int steps = 13;
  CAPTURE(row.run.ranks, row.run.stage, row.run.bf16, row.run.micro_batch, row.cuts);
  const test::TempDir folder;
  const test::TrainRun whole = row.run.train(folder.path() / "whole", steps, {"--save_steps", "0"});
  REQUIRE(whole.status == 0);
  REQUIRE(whole.metrics.size() == steps);
  CHECK((whole.metrics.back().at("skipped_steps") > 0) == !row.run.fp16.is_null());

  const std::filesystem::path output = folder.path() / "cut";
  REQUIRE(row.run.train(output, row.cuts[0]).status == 0);
  const test::TrainRun second = row.run.resume(output, row.cuts[1]);
  CAPTURE(second.err);
  REQUIRE(second.status == 0);
  const test::TrainRun third = row.run.resume(output, steps);
  REQUIRE(third.status == 0);
  CHECK(results_of(third) == results_of(whole));
  for (const char* const key : {"skipped_steps", "loss_scale"}) {
    CHECK(third.metrics.back().at(key) == whole.metrics.back().at(key));
  }
  CHECK((test::read_bytes(output / "model.safetensors") ==
         test::read_bytes(folder.path() / "whole/model.safetensors")));
}

TEST_CASE("Resume: a row is the mean of the steps since the row before", "[e2e][resume]") {
  constexpr int steps = 12;
  const std::vector<std::string> options{"--logging_steps", "5", "--save_steps", "7"};
  const test::TempDir folder;
  const std::filesystem::path output = folder.path() / "out";
  const ResumableRun run;
  const test::TrainRun each = run.train(folder.path() / "each", steps, {"--save_steps", "0"});
  const test::TrainRun whole = run.train(output, steps, options);
  REQUIRE(whole.status == 0);
  REQUIRE(whole.metrics.size() == 4);
  int before = 0;
  for (const nlohmann::json& row : whole.metrics) {
    const int step = row.at("step");
    double sum = 0;
    for (int i = before; i < step; ++i) {
      sum += each.metrics.at(static_cast<std::size_t>(i)).at("loss").get<double>();
    }
    CHECK(row.at("loss") == sum / (step - before));
    CHECK(row.at("step_loss") == each.metrics.at(static_cast<std::size_t>(step - 1)).at("loss"));
    before = step;
  }
  std::filesystem::remove_all(output / "checkpoint-12");
  const test::TrainRun again = run.resume(output, steps, options);
  CAPTURE(again.err);
  REQUIRE(again.status == 0);
  CHECK(results_of(again) == results_of(whole));
}

TEST_CASE("Resume: another number of ranks and another stage give the same run", "[e2e][resume]") {
  const auto [before, after, stage] =
      GENERATE(table<int, int, int>({{1, 3, 2}, {2, 4, 3}, {3, 1, 0}, {4, 2, 1}}));
  CAPTURE(before, after, stage);
  constexpr int steps = 6;
  const test::TempDir folder;
  const ResumableRun whole_run{.ranks = before, .stage = 3 - stage};
  const test::TrainRun whole = whole_run.train(folder.path() / "whole", steps);
  REQUIRE(whole.status == 0);
  const std::filesystem::path output = folder.path() / "cut";
  REQUIRE(whole_run.train(output, 3).status == 0);
  const ResumableRun changed{.ranks = after, .stage = stage, .micro_batch = 1};
  const test::TrainRun rest = changed.resume(output, steps);
  CAPTURE(rest.err);
  REQUIRE(rest.status == 0);
  REQUIRE(rest.metrics.size() == steps);
  for (std::size_t i = 0; i < rest.metrics.size(); ++i) {
    const double expected = whole.metrics[i].at("loss").get<double>();
    const double found = rest.metrics[i].at("loss").get<double>();
    CHECK(std::abs(found - expected) <= 1e-6 * expected);
    CHECK(rest.metrics[i].at("tokens") == whole.metrics[i].at("tokens"));
  }
}

TEST_CASE("Resume: the precision may change", "[e2e][resume]") {
  const bool to_bf16 = GENERATE(false, true);
  const bool in_16_bits = GENERATE(false, true);
  const test::TempDir folder;
  ResumableRun run{.stage = 2, .bf16 = !to_bf16, .in_16_bits = !to_bf16 && in_16_bits};
  REQUIRE(run.train(folder.path() / "out", 3).status == 0);
  run.bf16 = to_bf16;
  run.in_16_bits = to_bf16 && in_16_bits;
  const test::TrainRun rest = run.resume(folder.path() / "out", 6);
  CAPTURE(rest.err);
  REQUIRE(rest.status == 0);
  CHECK(rest.metrics.size() == 6);
}

TEST_CASE("Resume: metrics after the checkpoint are cut and a torn line too", "[e2e][resume]") {
  const test::TempDir folder;
  const ResumableRun run{.stage = 1};
  const std::filesystem::path output = folder.path() / "out";
  const test::TrainRun whole = run.train(output, 7, {"--save_steps", "4"});
  REQUIRE(whole.status == 0);
  std::filesystem::remove_all(output / "checkpoint-7");
  const std::string lines = test::read_bytes(output / "metrics.jsonl");
  std::ofstream(output / "metrics.jsonl", std::ios::binary) << lines.substr(0, lines.size() - 9);
  const test::TrainRun rest = run.resume(output, 7);
  REQUIRE(rest.status == 0);
  CHECK(results_of(rest) == results_of(whole));
}

TEST_CASE("Resume: accepts a checkpoint of another run or its directory", "[e2e][resume]") {
  const test::TempDir folder;
  const ResumableRun run{.stage = 3};
  const test::TrainRun whole = run.train(folder.path() / "first", 6, {"--save_steps", "2"});
  REQUIRE(whole.status == 0);
  const std::string first = (folder.path() / "first").string();
  const auto [from, begin] =
      GENERATE(table<std::string, std::size_t>({{"/checkpoint-2", 2}, {"/checkpoint-4/", 4}}));
  const test::TrainRun next =
      run.train(folder.path() / "next", 6, {"--resume_from_checkpoint", first + from});
  CAPTURE(next.err);
  REQUIRE(next.status == 0);
  const std::vector<std::string> expected = results_of(whole);
  CHECK(results_of(next) ==
        std::vector(expected.begin() + static_cast<int>(begin), expected.end()));
  const test::TrainRun newest =
      run.train(folder.path() / "newest", 7, {"--resume_from_checkpoint", first});
  CHECK(newest.metrics.size() == 1);
}

TEST_CASE("Resume: metrics of another run in the output directory are not continued",
          "[e2e][resume]") {
  const test::TempDir folder;
  const ResumableRun run{};
  REQUIRE(run.train(folder.path() / "first", 2).status == 0);
  const std::filesystem::path output = folder.path() / "other";
  REQUIRE(run.train(output, 3, {"--save_strategy", "no"}).status == 0);
  const std::vector<std::string> from{"--resume_from_checkpoint",
                                      (folder.path() / "first/checkpoint-2").string()};
  const test::TrainRun next = run.train(output, 4, from);  // with --overwrite_output_dir
  CAPTURE(next.err);
  REQUIRE(next.status == 0);
  REQUIRE(next.metrics.size() == 2);
  CHECK(next.metrics.front().at("step") == 3);
}

TEST_CASE("Resume: a run whose steps are all taken ends well", "[e2e][resume]") {
  const test::TempDir folder;
  const std::filesystem::path output = folder.path() / "out";
  const ResumableRun run{.stage = 2};
  const test::TrainRun first = run.train(output, 4);
  REQUIRE(first.status == 0);
  const std::string model = test::read_bytes(output / "model.safetensors");
  std::filesystem::remove(output / "model.safetensors");
  const test::TrainRun again = run.resume(output, 3);
  CHECK(again.status == 0);
  CHECK_THAT(again.out, ContainsSubstring("4 steps are taken already, of 3"));
  CHECK((test::read_bytes(output / "model.safetensors") == model));
  CHECK(results_of(again) == results_of(first));
}

TEST_CASE("Resume: a schedule of another length is used and reported", "[e2e][resume]") {
  const test::TempDir folder;
  const std::filesystem::path output = folder.path() / "out";
  const auto train = [&](const char* steps, std::vector<std::string> more,
                         const char* rate = "0.001") {
    more.insert(more.end(), {"--model_name_or_path", "model", "--train_file", "tokens.bin",
                             "--block_size", "32", "--lr", rate, "--lr_scheduler_type", "linear",
                             "--save_steps", "3", "--max_steps", steps});
    return test::run_train(1, nlohmann::json(), output, more);
  };
  const std::string told =
      "this run's schedule, rate 0.001, linear with total_steps 8, warmup_steps 0, from here on";
  REQUIRE(train("4", {}).status == 0);
  const test::TrainRun longer = train("8", {"--resume_from_checkpoint", "latest"});
  REQUIRE(longer.status == 0);
  CHECK_THAT(longer.err, ContainsSubstring(told));
  CHECK(longer.metrics[3].at("learning_rate") == 0.001 * (1.0 / 4));
  CHECK(longer.metrics[4].at("learning_rate") == 0.001 * (4.0 / 8));
  std::filesystem::remove_all(output / "checkpoint-8");
  const test::TrainRun same = train("8", {"--resume_from_checkpoint", "latest"});
  REQUIRE(same.status == 0);
  CHECK_THAT(same.err, !ContainsSubstring("this run's schedule"));
  CHECK(results_of(same) == results_of(longer));
  std::filesystem::remove_all(output / "checkpoint-8");
  const test::TrainRun faster = train("8", {"--resume_from_checkpoint", "latest"}, "0.002");
  CHECK_THAT(faster.err, ContainsSubstring("this run's schedule, rate 0.002, linear") &&
                             ContainsSubstring("the checkpoint's was rate 0.001, linear"));
}

TEST_CASE("Resume: a run that cannot resume is refused before a rank starts", "[e2e][resume]") {
  const test::TempDir folder;
  const std::filesystem::path output = folder.path() / "out";
  const ResumableRun run{.stage = 1, .micro_batch = 3};
  REQUIRE(run.train(output, 2).status == 0);
  std::filesystem::create_directories(folder.path() / "none");
  const auto refused = [&](const ResumableRun& changed, const std::string& output_name,
                           std::vector<std::string> extra, const std::string& message) {
    const test::TrainRun result = changed.train(folder.path() / output_name, 4, std::move(extra));
    CAPTURE(result.err);
    CHECK(result.status == 2);
    CHECK_THAT(result.err, ContainsSubstring(message) && !ContainsSubstring("rank "));
  };
  const std::string from = output.string();
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), {"--resume_from_checkpoint", "latest"});
    return more;
  };
  refused(run, "none", with({}), "there is no checkpoint-N in");
  refused(run, "absent", with({}), "there is no checkpoint-N in");
  refused(run, "new", {"--resume_from_checkpoint", from + "/checkpoint-3"}, "checkpoint-3");
  refused(run, "out", {}, "holds checkpoint-2, which would be taken");
  REQUIRE(run.train(folder.path() / "more", 3, {"--save_steps", "1"}).status == 0);
  const std::string more = (folder.path() / "more").string();
  refused(run, "more", {"--resume_from_checkpoint", more + "/checkpoint-1"}, "holds checkpoint-3");
  refused(run, "out", {"--resume_from_checkpoint", more}, "holds checkpoint-2");
  refused(run, "out", with({"--seed", "7"}), "seed is 42 in the checkpoint and 7 now");
  refused(run, "out", with({"--no_shuffle"}), "leave out --no_shuffle");
  refused(run, "out", with({"--block_size", "16"}), "set --block_size 32");
  std::string tokens = test::read_bytes(test::golden_folder / "tokens.bin") + std::string(2, '\1');
  ++tokens[8];  // their number
  const std::string longer = (folder.path() / "longer.bin").string();
  std::ofstream(longer, std::ios::binary) << tokens;
  ResumableRun on_longer = run;
  on_longer.train_file = {longer};
  refused(on_longer, "out", with({}), "the training data's size in bytes is");
  refused(
      run, "out",
      with({"--config_overrides", "n_layer=3,n_embd=48,n_head=4,vocab_size=160,n_positions=32"}),
      "n_layer is 2 in the checkpoint and 3 now");
  ResumableRun other = run;
  other.more = {"--global_batch_size", "6", "--resume_from_checkpoint", "latest"};
  nlohmann::json config = run.config();
  config.erase("train_batch_size");
  const test::TrainRun batch = test::run_train(2, config, output, other.arguments(4));
  CHECK(batch.status == 2);
  CHECK_THAT(batch.err, ContainsSubstring("train_batch_size is 12 in the checkpoint and 6 now: set "
                                          "--global_batch_size 12\n"));
}

TEST_CASE("Resume: --ignore_data_skip resumes with another batch and context and data",
          "[e2e][resume]") {
  const test::TempDir folder;
  const std::filesystem::path output = folder.path() / "out";
  const ResumableRun first{.stage = 1};
  REQUIRE(first.train(output, 3).status == 0);
  std::string tokens = test::read_bytes(test::golden_folder / "tokens.bin").substr(0, 1024);
  constexpr int count = 6001;
  tokens[8] = static_cast<char>(count % 256);
  tokens[9] = static_cast<char>(count / 256);
  for (int i = 0; i < count; ++i) tokens += {static_cast<char>(i % 100), '\0'};
  const std::string file = (folder.path() / "other.bin").string();
  std::ofstream(file, std::ios::binary) << tokens;
  ResumableRun other{.ranks = 1, .stage = 2, .clipping = 0.25};
  other.train_file = {file};
  other.more = {"--block_size", "16", "--no_shuffle", "--seed", "7"};
  const auto resume = [&](const std::filesystem::path& where, int steps,
                          std::vector<std::string> extra) {
    nlohmann::json config = other.config();
    config["train_batch_size"] = 6;
    config["bf16"]["enabled"] = true;
    std::vector<std::string> all = other.arguments(steps);
    all.insert(all.end(), {"--resume_from_checkpoint", "latest"});
    all.insert(all.end(), extra.begin(), extra.end());
    return test::run_train(1, config, where, all);
  };
  const test::TrainRun refused = resume(output, 8, {});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring("train_batch_size is 12 in the checkpoint and 6 now") &&
                              ContainsSubstring("add --ignore_data_skip"));

  std::filesystem::copy(output, folder.path() / "cut", std::filesystem::copy_options::recursive);
  const test::TrainRun whole = resume(output, 8, {"--ignore_data_skip"});
  CAPTURE(whole.err);
  REQUIRE(whole.status == 0);
  REQUIRE(whole.metrics.size() == 8);
  CHECK_THAT(
      whole.err,
      ContainsSubstring("--ignore_data_skip: the data begin anew; train_batch_size is 12 in "
                        "the checkpoint and 6 now; block_size is 32 in") &&
          ContainsSubstring("changed since the checkpoint: gradient_clipping 0.25 (was 0.5), "
                            "precision bf16 (was fp32)"));
  const std::int64_t tokens_before = whole.metrics[2].at("tokens");
  CHECK(whole.metrics[3].at("tokens") == tokens_before + 6 * 16);
  // The first epoch begins anew.
  CHECK(whole.metrics[3].at("epoch") == 1.0 / 63);

  // From then on the run is like any other: what it saves goes on with its own data.
  REQUIRE(resume(folder.path() / "cut", 5, {"--ignore_data_skip", "true"}).status == 0);
  const test::TrainRun rest = resume(folder.path() / "cut", 8, {});
  CAPTURE(rest.err);
  REQUIRE(rest.status == 0);
  CHECK(results_of(rest) == results_of(whole));
}

TEST_CASE("Resume: --ignore_data_skip refuses another model", "[e2e][resume]") {
  const test::TempDir folder;
  const std::filesystem::path output = folder.path() / "out";
  const ResumableRun run{.ranks = 1};
  REQUIRE(run.train(output, 1).status == 0);
  const test::TrainRun refused = run.resume(
      output, 2, {"--ignore_data_skip", "--config_overrides", "n_layer=3,n_embd=48,n_head=4"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring("the model's n_layer is 2 in the checkpoint and 3") &&
                              !ContainsSubstring("add --ignore_data_skip"));
}

TEST_CASE("Resume: other samples of the same data are refused by name", "[e2e][resume]") {
  const test::TempDir folder;
  const std::filesystem::path records = folder.path() / "records.jsonl";
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += fmt::format(
        "{{\"prompt\": \"The square of {} is \", \"completion\": \"{}, told here.\"}}\n", i, i * i);
  }
  std::ofstream(records, std::ios::binary) << text;
  ResumableRun run{.ranks = 1};
  run.train_file = {records.string()};
  run.environment = {{"DSTRAIN_CACHE", (folder.path() / "cache").string()}};
  const std::filesystem::path output = folder.path() / "out";
  const test::TrainRun first = run.train(output, 2);
  CAPTURE(first.err);
  REQUIRE(first.status == 0);
  const auto refused = [&](const ResumableRun& changed, std::vector<std::string> extra,
                           const std::string& message) {
    const test::TrainRun result = changed.resume(output, 4, std::move(extra));
    CAPTURE(result.err);
    CHECK(result.status == 2);
    CHECK_THAT(result.err, ContainsSubstring(message) && !ContainsSubstring("max_train_samples"));
  };
  refused(run, {"--packing", "false"},
          "packing is true in the checkpoint and false now: set --packing true");
  refused(run, {"--split", "9,1,0"}, "leave out --split");

  text[text.rfind('e')] = 'a';
  std::filesystem::create_directory(folder.path() / "other");
  const std::filesystem::path other = folder.path() / "other/records.jsonl";
  std::ofstream(other, std::ios::binary) << text;
  ResumableRun on_other = run;
  on_other.train_file = {other.string()};
  refused(on_other, {}, "the digest of the training data is");

  ResumableRun moved = run;
  moved.train_file = {(folder.path() / "moved.jsonl").string()};
  std::filesystem::rename(records, moved.train_file.front());
  const test::TrainRun resumed = moved.resume(output, 4);
  CAPTURE(resumed.err);
  CHECK(resumed.status == 0);
  CHECK_THAT(resumed.err, !ContainsSubstring("the training data is"));
}

TEST_CASE("Resume: a checkpoint that contradicts itself is refused", "[e2e][resume]") {
  const test::TempDir folder;
  const ResumableRun run{.ranks = 1};
  REQUIRE(run.train(folder.path() / "out", 2).status == 0);
  const std::string step = GENERATE("3", "1", "-5");
  replace_sealed(folder.path() / "out/checkpoint-2", "trainer_state.json", "\"global_step\": 2",
                 "\"global_step\": " + step);
  const test::TrainRun result = run.resume(folder.path() / "out", 4);
  CAPTURE(result.err);
  CHECK(result.status == 2);
  CHECK_THAT(result.err, ContainsSubstring("trainer_state.json: ") && ContainsSubstring(step));
}

TEST_CASE("Resume: a checkpoint of a newer dstrain is named and no older one is used",
          "[e2e][resume]") {
  const test::TempDir folder;
  const std::filesystem::path output = folder.path() / "out";
  const ResumableRun run{.more = {"--save_steps", "2"}};
  REQUIRE(run.train(output, 4).status == 0);
  const std::filesystem::path newest = output / "checkpoint-4";
  const auto kind = GENERATE(0, 1, 2);
  if (kind == 0) test::make_newer(newest);
  if (kind == 1) replace_sealed(newest, "trainer_state.json", "\"version\": 2", "\"version\": 9");
  if (kind == 2) replace_sealed(newest, "config.json", "gpt2", "gpt9");
  const std::string before = test::read_bytes(newest / "manifest.json");
  const test::TrainRun refused = run.resume(output, 6);
  CAPTURE(kind, refused.err);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring(" wrote ") && ContainsSubstring("use th") &&
                              !ContainsSubstring("damaged"));
  CHECK(test::read_bytes(newest / "manifest.json") == before);
}
