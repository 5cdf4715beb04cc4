// `dstrain config check` on the configurations that people find in tutorials, as they are printed
// there: tests/config/published. And what `dstrain config elastic` prints.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/e2e/launch_process.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;
using dstrain::test::Outcome;
using dstrain::test::run_command;

namespace {

const fs::path published = fs::path(DSTRAIN_SOURCE_DIR) / "tests/config/published";

Outcome check(const fs::path& file, const std::vector<std::string>& options = {}) {
  std::vector<std::string> command{"config", "check", file.string()};
  command.insert(command.end(), options.begin(), options.end());
  return run_command(command);
}

std::size_t line_count(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// What is printed for a file: warnings when it is accepted, or every line of its refusal.
struct Row {
  std::string name;
  std::vector<std::string> warnings;
  std::vector<std::string> errors;
};

const std::vector<Row> rows = {
    {"accumulation_auto", {}, {}},
    {"accumulation_manual", {}, {}},
    {"adamw_auto", {}, {}},
    {"adamw_manual", {}, {}},
    {"amp_auto", {}, {}},
    {"amp_on", {}, {"3:20: amp.enabled: true: apex's automatic mixed precision"}},
    {"autocast_beside_bf16",
     {"torch_autocast.enabled: is read as bf16.enabled", "no fp32 master"},
     {}},
    {"batch_auto", {}, {}},
    {"batch_manual", {}, {}},
    {"bf16_auto", {}, {}},
    {"bf16_on", {}, {}},
    {"clipping_auto", {}, {}},
    {"clipping_manual", {}, {}},
    {"communication_fp32", {}, {}},
    {"curriculum_template", {}, {":6:23: CONFIG_CL_MIN: this is a placeholder; write its value"}},
    {"everything_commented", {}, {"tensorboard.enabled: true: the TensorBoard monitor"}},
    {"force_cpu_optimizer", {"zero_force_ds_cpu_optimizer: has no effect"}, {}},
    {"fp16_auto", {}, {}},
    {"fp16_off", {}, {}},
    {"fp16_on", {}, {}},
    {"fp16_unclosed", {}, {":8:1: expected , or }, but the file ends"}},
    {"gather_on_save", {}, {}},
    {"gather_section", {}, {}},
    {"heredoc_template", {}, {":2:37: $MICRO_BATCH: this is a placeholder; write its value"}},
    {"inference_offload", {}, {}},
    {"megatron_missing_comma", {"contiguous_gradients: has no effect"}, {}},
    {"megatron_zero1", {"reduce_bucket_size: has no effect at stage 1"}, {}},
    {"megatron_zero2", {"allgather_bucket_size: has no effect"}, {}},
    {"megatron_zero3_offload", {}, {}},
    {"muon_params",
     {},
     {R"(optimizer.type: "Muon" is not implemented; use Adam, AdamW, Lamb or Lion)"}},
    {"node_local_storage", {}, {}},
    {"one_line_commented",
     {":2:26: this comment runs to the end of its line and hides "
      "\"train_micro_batch_size_per_gpu\", \"gradient_accumulation_steps\", \"optimizer\" and 51 "
      "more"},
     {}},
    {"partitioned_activations",
     {"partition_activations: has no effect: activations are split over model-parallel ranks",
      "contiguous_memory_optimization: has no effect"},
     {}},
    {"pipeline_non_reentrant",
     {},
     {"csv_monitor.enabled: true: the CSV monitor (metrics.jsonl has its values)"}},
    {"python_assignment", {}, {":1:1: this is Python; a configuration is JSON"}},
    {"python_inference", {}, {":3:20: False: that is Python; write false"}},
    {"python_inference_unclosed", {}, {":1:1: this is Python; a configuration is JSON"}},
    {"remarks",
     {":2:3: _read_the_docs: has no effect: read as a remark", ":3:3: _scheduler: has no effect",
      ":5:25: zero_optimization.comment: has no effect"},
     {}},
    {"round_robin", {"round_robin_gradients: has no effect"}, {}},
    {"untested_optimizer", {"zero_allow_untested_optimizer: has no effect"}, {}},
    {"warmup_auto", {}, {}},
    {"warmup_decay", {}, {}},
    {"warmup_manual", {}, {}},
    {"warmup_none", {}, {}},
    {"zero0", {}, {}},
    {"zero1", {}, {}},
    {"zero2_auto", {}, {}},
    {"zero2_full_auto", {}, {}},
    {"zero2_manual", {}, {}},
    {"zero2_offload_param",
     {"offload_param.device: has no effect at stage 2: every rank has all parameters on its"},
     {}},
    {"zero2_one_gpu", {}, {}},
    {"zero2_section", {}, {}},
    {"zero3_auto", {}, {}},
    {"zero3_infinity_old",
     {},
     {R"(did you mean "stage3_param_persistence_threshold"?)",
      R"(did you mean "cpu_offload_param"?)", "(--profile FILE shows it)"}},
    {"zero3_manual", {}, {}},
    {"zero3_nvme",
     {"zero_optimization.aio: has no effect: DeepSpeed reads aio at the top level"},
     {}},
    {"zero3_section", {}, {}},
};

}  // namespace

TEST_CASE("ConfigCheck: configurations of tutorials as printed", "[e2e][config]") {
  std::set<std::string> tabled;
  for (const Row& row : rows) {
    tabled.insert(row.name);
    const Outcome run = check(published / (row.name + ".json"));
    CAPTURE(row.name, run.out, run.err);
    CHECK(run.status == (row.errors.empty() ? 0 : 2));
    CHECK((run.out.find(row.name + ".json: ok\n") != std::string::npos) == row.errors.empty());
    for (const std::string& words : row.warnings)
      CHECK_THAT(run.out, Catch::Matchers::ContainsSubstring(words));
    for (const std::string& words : row.errors)
      CHECK_THAT(run.err, Catch::Matchers::ContainsSubstring(words));
    CHECK(line_count(run.err) == row.errors.size());
  }
  std::set<std::string> there;
  for (const auto& entry : fs::directory_iterator(published)) there.insert(entry.path().stem());
  CHECK(there == tabled);
}

TEST_CASE("ConfigCheck: an offload directory is required and checked", "[e2e][config]") {
  const dstrain::test::TempDir folder;
  const auto check_with = [&](const std::string& more) {
    const fs::path file = folder.path() / "ds.json";
    std::ofstream(file) << R"({"zero_optimization": {"stage": 3, "offload_param": {
  "device": "nvme")" << more
                        << "}}}";
    return check(file);
  };
  const Outcome without = check_with("");
  CHECK(without.status == 2);
  CHECK_THAT(without.err,
             Catch::Matchers::ContainsSubstring(":2:13: zero_optimization.offload_param.device: "
                                                "needs nvme_path, a directory on a fast disk"));
  const auto path = [](const fs::path& directory) {
    return ", \"nvme_path\": \"" + directory.string() + "\"";
  };
  CHECK_THAT(check_with(path(folder.path() / "made later")).out,
             !Catch::Matchers::ContainsSubstring("nvme_path"));
  const Outcome missing = check_with(path(folder.path() / "ds.json" / "missing"));
  CHECK(missing.status == 0);
  CHECK_THAT(missing.out, Catch::Matchers::ContainsSubstring(
                              "warning: zero_optimization.offload_param.nvme_path: ") &&
                              Catch::Matchers::ContainsSubstring(
                                  "ds.json is no directory; give one that every machine"));
  const Outcome file = check_with(path(folder.path() / "ds.json"));
  CHECK_THAT(file.out, Catch::Matchers::ContainsSubstring(
                           "ds.json: is no directory; give one that every machine"));
  CHECK_THAT(check_with(path(folder.path())).out, !Catch::Matchers::ContainsSubstring("nvme_path"));
}

TEST_CASE("ConfigCheck: mistakes of all kinds at once", "[e2e][config]") {
  const dstrain::test::TempDir folder;
  const fs::path file = folder.path() / "ds.json";
  std::ofstream(file) << R"({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 2,
  "gradient_acumulation": 1, "zero_optimization": {"offload_optimizer": {"device": "CPU"}}})";
  const Outcome run = check(file, {"--num_gpus", "3"});
  CHECK(run.status == 2);
  CHECK_THAT(run.err, Catch::Matchers::ContainsSubstring("gradient_acumulation: unknown key") &&
                          Catch::Matchers::ContainsSubstring(
                              "offload_optimizer.device: needs stage 1, 2 or 3"));
}

TEST_CASE("ConfigCheck: estimates the memory of a rank on an absent device", "[e2e][config]") {
  const dstrain::test::TempDir folder;
  const dstrain::test::Launch::Options nothing_here{
      .env = {{"DSTRAIN_GPU_DIRECTORY", folder.path().string()},
              {"DSTRAIN_PLUGIN_PATH", folder.path().string()}},
      .directory = {}};
  const fs::path file = folder.path() / "ds.json";
  std::ofstream(file)
      << R"({"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}})";
  const std::vector<std::string> command{"config", "check", file.string()};
  const auto out = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return run_command(words, nothing_here).out;
  };
  const std::string ok = file.string() + ": ok\n";
  const std::vector<std::string> model{"--config_name", "gpt2", "--num_gpus", "4"};
  CHECK_THAT(out(command, model),
             Catch::Matchers::StartsWith(ok + "on cpu, 4 ranks: memory per rank: "));
  std::vector<std::string> both = model;
  both.insert(both.end(), {"--device", "cuda"});
  const std::string on_cuda = out(command, both);
  CHECK_THAT(on_cuda,
             Catch::Matchers::StartsWith(ok + "on cuda, 4 ranks: memory per rank: device ") &&
                 Catch::Matchers::ContainsSubstring("buffers 16.0 MiB") &&
                 Catch::Matchers::ContainsSubstring("Libraries take more: the CUDA context"));
  CHECK(out({"--device", "cuda", "config", "check", file.string()}, model) == on_cuda);
  CHECK_THAT(out(command, {"--device", "cuda"}),
             Catch::Matchers::StartsWith(ok + "on cuda: ") &&
                 Catch::Matchers::ContainsSubstring("--config_name"));

  struct Row {
    std::vector<std::string> words;
    std::string told;
  };
  for (const Row& row :
       {Row{{"config", "check", file, "--max_steps", "3"}, "--max_steps"},
        Row{{"config", "check", file, "--device", "gpu"}, "--device=gpu"},
        Row{{"config", "show", file, "--device", "cuda"}, "only config check plans"},
        Row{{"--num_gpus", "4", "config", "check", file}, "but --device"}}) {
    const Outcome refused = run_command(row.words);
    CHECK(refused.status == 2);
    CHECK_THAT(refused.err, Catch::Matchers::ContainsSubstring(row.told));
  }
}

TEST_CASE("ConfigShow: auto sizes follow from the model", "[e2e][config]") {
  const std::string file = (published / "zero3_auto.json").string();
  const auto reduce_bucket_size = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"config", "show", file});
    const Outcome shown = run_command(options);
    REQUIRE(shown.status == 0);
    const auto report = nlohmann::json::parse(shown.out);
    return report.at("effective").at("zero_optimization").at("reduce_bucket_size").get<int>();
  };
  CHECK(reduce_bucket_size({}) == 0);
  CHECK(reduce_bucket_size({"--config_name", "gpt2"}) == 768 * 768);
  CHECK(reduce_bucket_size({"--config_name", "gpt2", "--config_overrides", "n_embd=96"}) ==
        96 * 96);
  CHECK(reduce_bucket_size({"--hidden-size", "48"}) == 48 * 48);
  const dstrain::test::TempDir model;
  std::ofstream(model.path() / "config.json") << R"({"model_type": "gpt2", "n_embd": 60})";
  CHECK(reduce_bucket_size({"--model_name_or_path", model.path().string()}) == 60 * 60);
}

TEST_CASE("config elastic: the batch and the numbers of ranks that share it", "[e2e]") {
  const dstrain::test::TempDir folder;
  const std::string file = (folder.path() / "config.json").string();
  const auto write = [&](const char* enabled) {
    std::ofstream(file) << R"({"elasticity": {"enabled": )" << enabled
                        << R"(, "max_train_batch_size": 32, "micro_batch_sizes": [1, 2, 3, 7],
                              "min_gpus": 1, "max_gpus": 1500, "version": 0.1}})";
  };
  write("true");
  // DeepSpeed's answers to this configuration.
  const Outcome all = run_command({"config", "elastic", file});
  CHECK(all.status == 0);
  CHECK(all.out == "final_batch_size: 24\nvalid_gpus: [1, 2, 3, 4, 6, 8, 12, 24]\n");
  const Outcome four = run_command({"config", "elastic", file, "--num_gpus", "4"});
  CHECK(four.status == 0);
  CHECK(four.out == all.out + "micro_batch_size: 3\n");
  const Outcome five = run_command({"config", "elastic", file, "--num_gpus", "5"});
  CHECK(five.status == 2);
  CHECK(five.err == file +
                        ": elasticity: 5 ranks cannot share its batch of 24; the nearest that "
                        "can: 4 and 6\n");
  write("false");
  const Outcome off = run_command({"config", "elastic", file});
  CHECK(off.status == 2);
  CHECK(off.err == file + ": elasticity.enabled is not true; set it\n");
}

TEST_CASE("config elastic: refuses what training refuses", "[e2e]") {
  const dstrain::test::TempDir folder;
  const std::string file = (folder.path() / "config.json").string();
  const auto elastic = [&](const std::string& text) {
    std::ofstream(file) << text;
    return run_command({"config", "elastic", file});
  };
  const std::string section =
      R"("enabled": true, "max_train_batch_size": 32, "micro_batch_sizes": [1, 2])";
  const auto [text, told] = GENERATE_COPY(table<std::string, std::string>({
      {R"({"train_batch_size": 8, "elasticity": {)" + section + "}}",
       ":1:22: train_batch_size: 8: elasticity decides it; leave it out, or set "
       "elasticity.ignore_non_elastic_batch_info to true\n"},
      {R"({"elasticity": {)" + section + R"(}, "gradient_accumulation_steps": 2})",
       "gradient_accumulation_steps: 2: elasticity decides it"},
      {R"({"elasticity": 5})", ":1:16: elasticity: expected an object, got 5\n"},
      {R"({"elasticity": []})", ":1:16: elasticity: expected an object, got a list\n"},
      {R"({"elasticity": {"enabled": "yes"}})", ": elasticity.enabled: expected true or false"},
  }));
  CAPTURE(text);
  const Outcome refused = elastic(text);
  CHECK(refused.status == 2);
  CHECK(refused.out.empty());
  CHECK_THAT(refused.err, Catch::Matchers::ContainsSubstring(told));
  CHECK(run_command({"config", "check", file}).err == refused.err);

  const Outcome ignoring = elastic(R"({"train_batch_size": 8, "elasticity": {)" + section +
                                   R"(, "ignore_non_elastic_batch_info": true}})");
  CHECK(ignoring.status == 0);
  CHECK(ignoring.err ==
        "warning: " + file + ":1:22: train_batch_size: 8 has no effect: elasticity decides\n");
}

TEST_CASE("Config check: the section of a file of options", "[e2e][config]") {
  const dstrain::test::TempDir folder;
  const std::string file = (folder.path() / "run.yaml").string();
  std::ofstream(file) << "config_name: gpt2\ndeepspeed:\n  train_batch_size: 8\n"
                         "  zero_optimization: {stage: 2}\n";
  const Outcome good = run_command({"config", "check", "--config", file});
  CAPTURE(good.err);
  CHECK(good.status == 0);
  CHECK(good.out.find(file + ": ok\non ") != std::string::npos);
  const Outcome shown = run_command({"config", "show", "--config", file, "--seed", "3"});
  CHECK(shown.status == 0);
  CHECK(shown.out.find("\"zero_optimization.stage\"") != std::string::npos);
  std::ofstream(file) << "deepspeed:\n  zero_optimisation: {stage: 2}\n";
  const Outcome wrong = run_command({"config", "check", "--config", file});
  CHECK(wrong.status == 2);
  CHECK(wrong.err.starts_with(file + ":2:3: zero_optimisation: unknown key"));
  CHECK(run_command({"config", "elastic", "--config", file}).status == 2);
}
