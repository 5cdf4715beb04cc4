#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/units.h"
#include "runtime/os/file.h"
#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_tree.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::run_command;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> tiny_model{
    "--config_name",
    "gpt2",
    "--config_overrides",
    "n_layer=2,n_embd=32,n_head=2,vocab_size=256,n_positions=32",
    "--block_size",
    "32",
    "--per_device_train_batch_size",
    "4"};

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

/// Text with little to learn: a tiny model is good at it soon. Its period is coprime to
/// the block size, so that every phase is seen at every position.
std::filesystem::path write_text(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "text.txt";
  std::ofstream file(path);
  for (int i = 0; i < 2000; ++i) file << "the cat sat on my mat. ";
  return path;
}

}  // namespace

TEST_CASE("train: a tiny model learns and generates what it learnt", "[e2e][train]") {
  const std::string bf16 = GENERATE("false", "true");
  const test::TempDir folder;
  const std::string text = write_text(folder.path()).string();
  const std::filesystem::path output = folder.path() / "out";
  const json config{{"train_micro_batch_size_per_gpu", 4},
                    {"optimizer", {{"type", "AdamW"}, {"params", {{"lr", 5e-3}}}}},
                    {"zero_optimization", {{"stage", 3}}}};
  const test::TrainRun run =
      test::run_train(2, config, output,
                      with(tiny_model, {"--train_file", text, "--validation_file", text,
                                        "--max_steps", "200", "--bf16", bf16}));
  CAPTURE(run.err, run.out);
  REQUIRE(run.status == 0);
  REQUIRE(run.metrics.size() == 201);
  CHECK(run.metrics.front().at("loss").get<double>() > 5);
  CHECK(run.metrics.back().at("eval_loss").get<double>() < 0.5);
  // An epoch of 1437 samples takes 180 steps, the last one of 5 samples.
  CHECK(run.metrics[199].at("tokens") == (1437 + 20 * 8) * 32);
  CHECK(run.metrics[199].at("memory").at("device").get<std::int64_t>() > 0);
  CHECK(run.out.find("step 200/200 | loss") != std::string::npos);
  CHECK(std::filesystem::exists(output / "config.json"));

  test::Launch generate({"generate", "--model_name_or_path", output.string(), "--prompt",
                         "sat on my mat. the c", "--max_new_tokens", "12", "--stream"});
  REQUIRE(generate.wait() == 0);
  CHECK(generate.out() == "at sat on my\n");
}

TEST_CASE("train: a file of options trains as the typed ones do", "[e2e][train]") {
  const test::TempDir folder;
  const std::string text = write_text(folder.path()).string();
  const fs::path file = folder.path() / "run.yaml";
  const auto losses = [](const fs::path& output) {
    std::vector<json> all;
    for (const json& row : test::read_metrics(output)) all.push_back(row.value("loss", json()));
    return all;
  };
  const test::TrainRun typed = test::run_train(
      2, {{"zero_optimization", {{"stage", 2}}}}, folder.path() / "typed",
      with(tiny_model, {"--train_file", text, "--max_steps", "3", "--learning_rate", "1e-3"}));
  REQUIRE(typed.status == 0);
  write_text_file(file, fmt::format("config_name: gpt2\n"
                                    "config_overrides: {}\n"
                                    "block_size: 32\n"
                                    "per-device-train-batch-size: 4\n"
                                    "train_file: [{}]\n"
                                    "max_steps: 9\n"
                                    "learning_rate: 1e-3\n"
                                    "logging_steps: 1\n"
                                    "save_strategy: 'no'\n"
                                    "lr_scheduler_type: constant\n"
                                    "output_dir: {}\n"
                                    "deepspeed: {{zero_optimization: {{stage: 2}}}}\n",
                                    tiny_model[3], text, (folder.path() / "file").string()));
  const test::Outcome ran = run_command({"--num_gpus", "2", "train", file, "--max_steps", "3"});
  CAPTURE(ran.err);
  REQUIRE(ran.status == 0);
  CHECK(losses(folder.path() / "file") == losses(folder.path() / "typed"));
  CHECK(losses(folder.path() / "file").size() == 3);
  write_text_file(file, "seed: 1\nnum_gpus: 2\n");
  const test::Outcome launch = run_command({"train", "--config", file});
  CHECK(launch.status == 2);
  CHECK_THAT(launch.err, ContainsSubstring(file.string() +
                                           ":2: --num_gpus=2 is a launch option: write it before"));
}

TEST_CASE("train: the exported model can be trained again", "[e2e][train]") {
  const bool bf16 = GENERATE(false, true);
  const test::TempDir folder;
  const std::string text = write_text(folder.path()).string();
  const auto train = [&](const std::string& name, std::vector<std::string> arguments) {
    return test::run_train(
        1, {}, folder.path() / name,
        with(std::move(arguments),
             {"--train_file", text, "--no_shuffle", "--learning_rate", "0", "--block_size", "32",
              "--max_steps", "2", "--bf16", bf16 ? "1" : "0"}));
  };
  const test::TrainRun first = train("first", tiny_model);
  const test::TrainRun second =
      train("second", {"--model_name_or_path", (folder.path() / "first").string(),
                       "--per_device_train_batch_size", "4"});
  REQUIRE(first.status == 0);
  REQUIRE(second.status == 0);
  CHECK(first.metrics[1].at("loss") == second.metrics[1].at("loss"));
  CHECK(test::read_json(folder.path() / "second/config.json").at("torch_dtype") ==
        (bf16 ? "bfloat16" : "float32"));
  CHECK((test::read_bytes(folder.path() / "first/model.safetensors") ==
         test::read_bytes(folder.path() / "second/model.safetensors")));
}

TEST_CASE("train: schedules use the number of steps of the data", "[e2e][train]") {
  // 130 samples in batches of 13, of which 4 are the warmup.
  const std::vector<std::string> arguments{"--model_name_or_path",
                                           "model",
                                           "--train_file",
                                           "tokens.bin",
                                           "--lr",
                                           "0.001",
                                           "--block_size",
                                           "32",
                                           "--num_train_epochs",
                                           "1",
                                           "--lr_scheduler_type",
                                           "linear",
                                           "--warmup_steps",
                                           "0.31"};
  const json decay{{"type", "WarmupDecayLR"},
                   {"params",
                    {{"total_num_steps", "auto"},
                     {"warmup_num_steps", "auto"},
                     {"warmup_max_lr", "auto"},
                     {"warmup_type", "linear"}}}};
  const auto sixths = [](int count) {
    return 0.001 * (count / 6.0);
  };
  struct Row {
    json config;
    std::vector<double> rates;
  };
  const Row row = GENERATE_COPY(values<Row>(
      {{{{"train_batch_size", 13}},
        {0, 0.00025, 0.0005, 0.00075, 0.001, sixths(5), sixths(4), sixths(3), sixths(2),
         sixths(1)}},
       {{{"train_batch_size", 13}, {"scheduler", decay}},
        {0, 0, 0.00025, 0.0005, 0.00075, 0.001, sixths(5), sixths(4), sixths(3), sixths(2)}}}));
  const test::TempDir folder;
  const test::TrainRun run = test::run_train(1, row.config, folder.path() / "out", arguments);
  CAPTURE(row.config.dump(), run.err);
  REQUIRE(run.status == 0);
  REQUIRE(run.metrics.size() == row.rates.size());
  for (std::size_t i = 0; i < row.rates.size(); ++i) {
    CHECK(run.metrics[i].at("learning_rate").get<double>() ==
          Catch::Approx(row.rates[i]).epsilon(1e-14));
  }
  const bool of_trainer = !row.config.contains("scheduler");
  CHECK(run.err.find(of_trainer ? "10 steps of AdamW, rate 0.001, linear with a warmup of 4 steps; "
                                  "unlike Hugging Face's Trainer: another random order of samples"
                                : "10 steps of AdamW, rate 0.001, WarmupDecayLR; unlike") !=
        std::string::npos);
}

TEST_CASE("train: a typed logging interval prints whatever the configuration has", "[e2e][train]") {
  const test::TempDir folder;
  const fs::path records = folder.path() / "records.jsonl";
  {
    std::ofstream file(records);
    for (int i = 0; i < 64; ++i)
      file << R"({"prompt": "one ", "completion": "two"})"
           << "\n";
  }
  const json config{{"train_batch_size", 4}, {"steps_per_print", 2000}};
  const test::TrainRun run = test::run_train(
      1, config, folder.path() / "out",
      with(tiny_model,
           {"--train_file", records.string(), "--max_steps", "5", "--logging_steps", "2"}));
  CAPTURE(run.out, run.err);
  REQUIRE(run.status == 0);
  CHECK_THAT(run.out, ContainsSubstring("step 2/5") && ContainsSubstring("step 4/5") &&
                          !ContainsSubstring("step 3/5"));
  CHECK_THAT(run.err, ContainsSubstring("unlike Hugging Face's Trainer: records share rows"));
}

TEST_CASE("train: a typed dropout becomes the model's", "[e2e][train]") {
  const test::TempDir folder;
  const std::string text = write_text(folder.path()).string();
  const fs::path first = folder.path() / "first";
  const fs::path second = folder.path() / "second";
  const std::vector<std::string> run{"--train_file", text, "--max_steps", "1"};
  REQUIRE(
      test::run_train(1, nullptr, first, with(with(tiny_model, run), {"--hidden_dropout", "0.25"}))
          .status == 0);
  const json before = json::parse(read_text_file(first / "config.json", mebibyte));
  CHECK(before.at("resid_pdrop") == 0.25);
  CHECK(before.at("attn_pdrop") == 0.0);
  REQUIRE(test::run_train(1, nullptr, second,
                          with(run, {"--model_name_or_path", first.string(), "--block_size", "32",
                                     "--hidden_dropout", "0"}))
              .status == 0);
  const json after = json::parse(read_text_file(second / "config.json", mebibyte));
  CHECK(after.at("resid_pdrop") == 0.0);
  CHECK(after.at("embd_pdrop") == 0.0);
}

TEST_CASE("train: a note says that --max_samples counts packed samples", "[e2e][train]") {
  const test::TempDir folder;
  const fs::path records = folder.path() / "records.jsonl";
  std::ofstream file(records);
  for (int i = 0; i < 40; ++i) file << R"({"text": "the cat sat on my mat."})" << '\n';
  file.close();
  const auto told = [&](const std::vector<std::string>& more) {
    const std::vector<std::string> run{"--train_file", records.string(), "--max_steps", "1"};
    const test::TrainRun out =
        test::run_train(1, nullptr, folder.path() / "out", with(with(tiny_model, run), more));
    CHECK(out.status == 0);
    return out.err;
  };
  const std::string note =
      "--max_samples 8: counts samples of 32 tokens, into which records are packed, not records; "
      "add --packing false to count these";
  CHECK_THAT(told({"--max_samples", "8"}), ContainsSubstring(note));
  fs::remove_all(folder.path() / "out");
  CHECK_THAT(told({"--max_samples", "8", "--packing", "false"}),
             !ContainsSubstring("--max_samples"));
  fs::remove_all(folder.path() / "out");
  CHECK_THAT(told({"--max_train_samples", "8"}), !ContainsSubstring("counts samples"));
}

TEST_CASE("train: usage errors end with status 2 before a rank starts", "[e2e][train]") {
  struct Row {
    std::vector<std::string> arguments;
    std::string named;  ///< what the message must contain
  };
  const test::TempDir folder;
  const std::string text = write_text(folder.path()).string();
  const std::string short_text = (folder.path() / "short.txt").string();
  std::ofstream(short_text) << "too short";
  const std::string config = (folder.path() / "typo.json").string();
  std::ofstream(config) << R"({"zero_optimization": {"stgae": 1}, "gradient_cliping": 1})";
  const std::vector<Row> rows{
      {{"--train_file", text}, "--config_name"},
      {with(tiny_model, {"--train_file", "absent.txt"}), "absent.txt"},
      {with(tiny_model, {"--train_file", short_text}), "short.txt"},
      {with(tiny_model, {"--train_file", text, "--deepspeed", config}), "gradient_clipping"},
      {with(tiny_model, {"--train_file", text, "--deepspeed", config}), "stage"},
      {with(tiny_model, {"--train_file", text, "--lerning_rate", "1"}), "learning_rate"},
      {with(tiny_model, {"--train_file", text, "--block_size", "64"}), "64"},
      {{"--config_name", "gpt3", "--train_file", text}, "gpt2-medium"},
      {{"--model_name_or_path", folder.path().string(), "--train_file", text}, "config.json"},
      {with(tiny_model, {"--train_file", text, "--per_device_train_batch_size", "100000",
                         "--dataloader_drop_last"}),
       "200000"}};
  for (const Row& row : rows) {
    test::Launch launch(with({"--num_gpus", "2", "train", "--output_dir",
                              (folder.path() / "out").string(), "--max_steps", "1"},
                             row.arguments));
    CAPTURE(row.named, row.arguments, launch.err());
    CHECK(launch.wait() == 2);
    CHECK(launch.err().find(row.named) != std::string::npos);
    CHECK(launch.err().find("rank") == std::string::npos);
    CHECK(!std::filesystem::exists(folder.path() / "out"));
  }
}

TEST_CASE("train: an output directory that cannot be used is found before a rank starts",
          "[e2e][train]") {
  const test::TempDir folder;
  const std::string text = write_text(folder.path()).string();
  std::ofstream(folder.path() / "file") << "not a directory";
  std::filesystem::create_directories(folder.path() / "taken/model.safetensors");
  for (const char* output : {"file/sub", "taken", "/dev/null/x"}) {
    const std::string path = (folder.path() / output).string();
    test::Launch launch(with({"--num_gpus", "2", "train", "--overwrite_output_dir", "--output_dir",
                              path, "--train_file", text, "--max_steps", "1"},
                             tiny_model));
    CHECK(launch.wait() == 2);
    CAPTURE(launch.err());
    CHECK(launch.err().find("--output_dir " + path) != std::string::npos);
    CHECK(launch.err().find("rank") == std::string::npos);
  }
}

TEST_CASE("train: a Python module may have a command's name", "[e2e]") {
  const test::TempDir folder;  // with a stand-in: Python is not needed to test
  const std::filesystem::path python = folder.path() / "python3";
  std::ofstream(python) << "#!/bin/sh\n";
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  test::Launch launch({"--dry_run", "--module", "train", "--its", "own"},
                      {.env = {{"PATH", folder.path().string()}}, .directory = {}});
  REQUIRE(launch.wait() == 0);
  const json plan = json::parse(launch.out());
  const json words = plan.at("commands").at(0);
  CHECK(words.at(words.size() - 2) == "--its");
}

TEST_CASE("train: a token that the model does not know is found before a rank starts", "[e2e]") {
  const test::TempDir folder;
  test::Launch launch({"--num_gpus", "2", "train", "--output_dir", (folder.path() / "out").string(),
                       "--train_file", (test::golden_folder / "tokens.bin").string(),
                       "--config_name", "gpt2", "--config_overrides",
                       "n_layer=1,n_embd=32,n_head=2,vocab_size=150,n_positions=32", "--block_size",
                       "32", "--max_steps", "1"});
  CHECK(launch.wait() == 2);
  CAPTURE(launch.err());
  CHECK(launch.err().find("tokens.bin") != std::string::npos);
  CHECK(launch.err().find("rank") == std::string::npos);
}

TEST_CASE("train: tracked model states follow the ZeRO formula", "[e2e][train][memory]") {
  const test::TempDir folder;
  const std::string text = write_text(folder.path()).string();
  const int ranks = GENERATE(1, 2, 4);
  const int stage = GENERATE(0, 1, 2, 3);
  CAPTURE(ranks, stage);
  const json config{
      {"train_micro_batch_size_per_gpu", 1},
      {"zero_optimization", {{"stage", stage}, {"stage3_param_persistence_threshold", 0}}}};
  const test::TrainRun run =
      test::run_train(ranks, config, folder.path() / "out",
                      {"--config_name", "gpt2", "--config_overrides",
                       "n_layer=3,n_embd=96,n_head=2,vocab_size=256,n_positions=32", "--block_size",
                       "32", "--train_file", text, "--max_steps", "1"});
  REQUIRE(run.status == 0);
  constexpr double psi = 256 * 96 + 32 * 96 + 3 * (12 * 96 * 96 + 13 * 96) + 2 * 96;
  const double n = ranks;
  const std::array<double, 4> formula{16 * psi, 8 * psi + 8 * psi / n, 4 * psi + 12 * psi / n,
                                      16 * psi / n};
  const json& memory = run.metrics.back().at("device_memory");
  const double states = memory.at("parameters").get<double>() +
                        memory.at("gradients").get<double>() + memory.at("optimizer").get<double>();
  CHECK(states == Catch::Approx(formula.at(static_cast<std::size_t>(stage))).epsilon(0.05));
}

TEST_CASE("train: a device memory budget is met or refused", "[e2e][train]") {
  const test::TempDir folder;
  const std::string text = write_text(folder.path()).string();
  const auto run = [&](const std::string& budget, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--device_memory", budget, "train", "--output_dir",
                             (folder.path() / "out").string(), "--overwrite_output_dir",
                             "--train_file", text, "--max_steps", "1"});
    test::Launch launch(with(more, tiny_model));
    const int status = launch.wait();
    return std::pair(status, launch.err());
  };
  CHECK(run("64MiB").first == 0);
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, std::vector<std::string>{"--dry_run"}}) {
    const auto [status, message] = run("200KiB", more);
    CHECK(status == 2);
    CHECK(message.find("--device_memory allows 200 KiB") != std::string::npos);
  }
}

TEST_CASE("train: ranks that need more than the machine's memory are refused", "[e2e][train]") {
  const test::TempDir folder;
  const fs::path output = folder.path() / "out";
  const std::string text = write_text(folder.path()).string();
  const auto run = [&](std::vector<std::string> launch, const std::vector<std::string>& more) {
    launch.insert(launch.end(), {"--device", "cpu", "train", "--output_dir", output.string(),
                                 "--train_file", text, "--max_steps", "1"});
    return run_command(with(with(launch, tiny_model), more));
  };
  const std::vector<std::string> two{"--num_gpus", "2"};
  const auto refused = run(with(two, {"--host_memory", "900KiB"}), {});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err,
             ContainsSubstring("2 ranks of this machine would need ") &&
                 ContainsSubstring("of its memory, and --host_memory allows 900 KiB") &&
                 ContainsSubstring("it would need less with ") &&
                 ContainsSubstring("a micro batch of 2 (") &&
                 ContainsSubstring("fewer ranks on a machine"));
  CHECK(run(with(two, {"--dry_run", "--host_memory", "900KiB"}), {}).status == 2);
  CHECK_FALSE(fs::exists(output));
  CHECK(run(with(two, {"--host_memory", "64MiB"}), {}).status == 0);
  // A rank that no launcher has looked after finds it itself, before it allocates.
  test::Launch::Options little;
  little.env = {{"DSTRAIN_HOST_MEMORY", "460800"}};
  const std::string daemon = (test::dstrain_program().parent_path() / "dstraind").string();
  const auto alone =
      run_command(with({"-q", "--num_gpus", "2", daemon, "train", "--output_dir", output.string(),
                        "--overwrite_output_dir", "--train_file", text, "--max_steps", "1"},
                       tiny_model),
                  little);
  CHECK(alone.status == 2);
  CHECK_THAT(alone.err, ContainsSubstring("2 ranks of this machine would need ") &&
                            ContainsSubstring("--host_memory allows 450 KiB"));
}

TEST_CASE("train: a model that no machine holds is refused before step 0", "[e2e][train]") {
  const test::TempDir folder;
  const std::string text = write_text(folder.path()).string();
  // 1.3 PB of model states, more than the addresses of a process.
  const std::vector<std::string> huge{
      "--config_name",
      "gpt2",
      "--config_overrides",
      "n_layer=100,n_embd=262144,n_head=2048,vocab_size=256,n_positions=8",
      "--block_size",
      "8",
      "--per_device_train_batch_size",
      "4"};
  const std::vector<std::string> train{"train",
                                       "--output_dir",
                                       (folder.path() / "out").string(),
                                       "--train_file",
                                       text,
                                       "--max_steps",
                                       "1"};
  const auto measured = run_command(with(with({"--device", "cpu"}, train), huge));
  CHECK(measured.status == 2);
  CHECK_THAT(measured.err, ContainsSubstring("1 rank of this machine would need ") &&
                               ContainsSubstring("offload_optimizer and offload_param to nvme") &&
                               ContainsSubstring("--host_memory SIZE overrides it"));
  // By whom it is overruled the allocation fails, with the same advice.
  const auto overruled =
      run_command(with(with({"--device", "cpu", "--host_memory", "4000000TiB"}, train), huge));
  CHECK(overruled.status == 1);
  CHECK_THAT(overruled.err,
             ContainsSubstring("of memory left") && ContainsSubstring("it would need less with "));
  // The ranks may run on another machine.
  write_text_file(folder.path() / "ds.json", "{}");
  const auto checked = run_command(
      with({"config", "check", (folder.path() / "ds.json").string(), "--device", "cpu"}, huge));
  CHECK(checked.status == 0);
  CHECK_THAT(checked.out,
             ContainsSubstring("warning: dstrain train would refuse this run here: 1 rank"));
  const auto allowed = run_command(with({"config", "check", (folder.path() / "ds.json").string(),
                                         "--device", "cpu", "--host_memory", "4000000TiB"},
                                        huge));
  CHECK(allowed.status == 0);
  CHECK_THAT(allowed.out, !ContainsSubstring("would refuse this run here"));
}

TEST_CASE("train: a refused budget names changes and the memory that they need", "[e2e][train]") {
  const test::TempDir folder;
  const std::string text = write_text(folder.path()).string();
  struct Change {
    std::string name;
    json config;
    std::string micro_batch = "4";
  };
  const json host{{"device", "cpu"}};
  const auto zero = [](const json& section) {
    return json{{"zero_optimization", section}};
  };
  const auto change = GENERATE_COPY(
      Change{"a micro batch of 2", json::object(), "2"},
      Change{"offload_optimizer to cpu in stage 1",
             zero({{"stage", 1}, {"offload_optimizer", host}})},
      Change{"offload_optimizer and offload_param to cpu in stage 3",
             zero({{"stage", 3}, {"offload_optimizer", host}, {"offload_param", host}})});
  const auto run = [&](const std::string& budget, const Change& made) {
    std::vector<std::string> arguments = tiny_model;
    *std::ranges::find(arguments, "4") = made.micro_batch;
    const std::vector<std::string> launch{"--device",        "cpu", "--num_gpus", "2",
                                          "--device_memory", budget};
    return test::run_train(launch, made.config, folder.path() / "out",
                           with(arguments, {"--train_file", text, "--max_steps", "1"}));
  };
  const test::TrainRun refused = run("200KiB", {"", json::object()});
  CAPTURE(change.name, refused.err);
  REQUIRE(refused.status == 2);
  const test::TrainRun changed = run("1GiB", change);
  REQUIRE(changed.status == 0);
  Bytes planned = 0;
  for (const json& bytes : changed.metrics.back().at("planned_device_memory")) {
    planned += bytes.get<Bytes>();
  }
  CHECK(refused.err.find(change.name + " (" + format_bytes(planned) + ")") != std::string::npos);
}
