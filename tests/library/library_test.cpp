// Programs that train through libdstrain, under the launcher, beside `dstrain train`.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/catalog.h"
#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_gpu.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::Launch;

namespace {

namespace fs = std::filesystem;

constexpr const char* sizes =
    "n_layer=2,n_embd=48,n_head=4,vocab_size=256,n_positions=32,embd_pdrop=0.1,attn_pdrop=0.1,"
    "resid_pdrop=0.1";

/// A text, a configuration, and programs that train on it.
class Trainings {
 public:
  Trainings() : text_(folder_.path() / "text"), config_(folder_.path() / "ds.json") {
    std::ofstream text(text_);
    for (int i = 0; text.tellp() < 12'000; ++i) text << i * i << " is the square of " << i << ".\n";
  }

  void configure(const json& more) {
    json config{
        {"train_batch_size", 12},
        {"optimizer", {{"type", "AdamW"}, {"params", {{"lr", 2e-3}}}}},
        {"scheduler",
         {{"type", "WarmupLR"}, {"params", {{"warmup_max_lr", 2e-3}, {"warmup_num_steps", 4}}}}},
        {"gradient_clipping", 0.8}};
    config.merge_patch(more);
    std::ofstream(config_) << config.dump();
  }

  [[nodiscard]] fs::path path(const std::string& name) const { return folder_.path() / name; }

  /// `dstrain --num_gpus RANKS PROGRAM ...`.
  [[nodiscard]] std::vector<std::string> command(int ranks, std::vector<std::string> words) const {
    words.insert(words.begin(), {"-q", "--num_gpus", fmt::format("{}", ranks)});
    return words;
  }
  [[nodiscard]] std::vector<std::string> trainer(int ranks,
                                                 const std::string& output,
                                                 int steps) const {
    return command(
        ranks, {DSTRAIN_LIBRARY_TRAINER, config_, text_, path(output), fmt::format("{}", steps)});
  }
  [[nodiscard]] std::vector<std::string> rank(int ranks,
                                              const std::string& mode,
                                              const std::string& output = "out") const {
    return command(ranks, {DSTRAIN_LIBRARY_RANK, mode, config_, text_, path(output)});
  }
  [[nodiscard]] std::vector<std::string> regression(int ranks, const std::string& mode) const {
    return command(ranks, {DSTRAIN_REGRESSION_RANK, mode, config_, text_, path("out")});
  }
  [[nodiscard]] std::vector<std::string> train(int ranks, const std::string& output) const {
    return command(ranks, {"train",
                           "--config_name",
                           "gpt2",
                           "--config_overrides",
                           sizes,
                           "--train_file",
                           text_,
                           "--block_size",
                           "32",
                           "--no_shuffle",
                           "--max_steps",
                           "6",
                           "--logging_steps",
                           "1",
                           "--save_steps",
                           "0",
                           "--deepspeed",
                           config_,
                           "--output_dir",
                           path(output)});
  }
  [[nodiscard]] std::string config() const { return config_; }
  [[nodiscard]] std::string text() const { return text_; }

 private:
  test::TempDir folder_;
  std::string text_;
  std::string config_;
};

/// The lines with a loss; the rank's prefix of each, where there is one, is cut.
std::vector<std::string> steps_of(const std::string& out) {
  std::vector<std::string> steps;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("step ");
    if (at != line.npos && line.find(" loss ") != line.npos) steps.push_back(line.substr(at));
  }
  return steps;
}

std::vector<double> losses_of(const std::string& out) {
  std::vector<double> losses;
  for (const std::string& line : steps_of(out)) {
    losses.push_back(std::stod(line.substr(line.find(" loss ") + 6)));
  }
  return losses;
}

test::Outcome run(const std::vector<std::string>& command) {
  return test::run_command(command, {.env = {{"OMP_NUM_THREADS", "1"}}, .directory = ""});
}

/// Stages, ranks, precisions and tiers, one of each with another.
struct Kind {
  const char* name;
  int ranks;
  const char* config;
};
constexpr Kind kinds[] = {
    {"one rank", 1, R"({"train_micro_batch_size_per_gpu": 12})"},
    {"stage 1 accumulates", 2,
     R"({"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 1}})"},
    {"stage 2 in bf16", 3, R"({"bf16": {"enabled": true}, "zero_optimization": {"stage": 2}})"},
    {"stage 3 in fp16", 2,
     R"({"fp16": {"enabled": true, "initial_scale_power": 20}, "zero_optimization":
         {"stage": 3, "stage3_param_persistence_threshold": 300}})"},
    {"states in host memory", 2,
     R"({"train_micro_batch_size_per_gpu": 3, "zero_optimization": {"stage": 2,
         "offload_optimizer": {"device": "cpu"}}})"},
    {"all on a disk", 2,
     R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme"},
         "offload_param": {"device": "nvme"}}})"},
};

/// Where a disk is offloaded to.
void add_disk(json& config, const Trainings& trainings) {
  for (const char* section : {"offload_optimizer", "offload_param"}) {
    const auto pointer = json::json_pointer("/zero_optimization/" + std::string(section));
    if (config.contains(pointer) && config[pointer]["device"] == "nvme") {
      config[pointer]["nvme_path"] = trainings.path("swap");
    }
  }
}

json config_of(const Kind& kind, const Trainings& trainings) {
  json config = json::parse(kind.config);
  add_disk(config, trainings);
  return config;
}

}  // namespace

TEST_CASE("Library: a loop of one's own has the losses of train", "[library]") {
  const Kind kind = GENERATE(from_range(std::begin(kinds), std::end(kinds)));
  CAPTURE(kind.name);
  Trainings trainings;
  trainings.configure(config_of(kind, trainings));
  const test::Outcome command = run(trainings.train(kind.ranks, "train"));
  CAPTURE(command.err);
  REQUIRE(command.status == 0);
  std::vector<double> expected;
  for (const json& row : test::read_metrics(trainings.path("train"))) {
    expected.push_back(row.at("step_loss"));
  }
  REQUIRE(expected.size() == 6);
  const test::Outcome loop = run(trainings.trainer(kind.ranks, "loop", 6));
  CAPTURE(loop.err);
  REQUIRE(loop.status == 0);
  CHECK(losses_of(loop.out) == expected);
  CHECK(test::read_bytes(trainings.path("loop") / "model.safetensors") ==
        test::read_bytes(trainings.path("train") / "model.safetensors"));
  const test::Outcome by_hand = run(trainings.rank(kind.ranks, "hand"));
  CAPTURE(by_hand.err);
  REQUIRE(by_hand.status == 0);
  CHECK(losses_of(by_hand.out) == expected);
}

TEST_CASE("Library: any number of labels may count in a micro-batch", "[library]") {
  Trainings trainings;
  trainings.configure({{"train_micro_batch_size_per_gpu", 2}});
  const test::Outcome ran = run(trainings.rank(2, "labels"));
  CAPTURE(ran.err);
  REQUIRE(ran.status == 0);
  const std::vector<std::string> steps = steps_of(ran.out);
  const std::vector<double> losses = losses_of(ran.out);
  REQUIRE(steps.size() == 12);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(steps[8 + i] == steps[i]);  // with the true number from the start
    CHECK(losses[4 + i] == Approx(losses[i]).epsilon(1e-6));
  }
}

TEST_CASE("Library: a stopped program resumes with the same bits", "[library]") {
  Trainings trainings;
  trainings.configure({{"zero_optimization", {{"stage", 2}}}});
  const auto env = Launch::Options{.env = {{"OMP_NUM_THREADS", "1"}}, .directory = ""};
  Launch stopped(trainings.trainer(2, "out", 1'000'000), env);
  REQUIRE(stopped.wait_for_output("step 7 "));
  stopped.signal(SIGTERM);
  CHECK(stopped.wait() == 75);
  CAPTURE(stopped.err());
  CHECK(stopped.nothing_left());
  std::vector<std::string> steps = steps_of(stopped.out());
  REQUIRE(steps.size() >= 7);
  const int saved = static_cast<int>(steps.size());
  const test::Outcome resumed = run(trainings.trainer(2, "out", saved + 20));
  CAPTURE(resumed.err);
  REQUIRE(resumed.status == 0);
  CHECK_THAT(resumed.out, ContainsSubstring(fmt::format("going on after step {}", saved)));
  for (const std::string& step : steps_of(resumed.out)) steps.push_back(step);
  CHECK(steps == steps_of(run(trainings.trainer(2, "whole", saved + 20)).out));
}

TEST_CASE("Library: train resumes from a program's checkpoint", "[library]") {
  Trainings trainings;
  trainings.configure(json::object());
  const test::Outcome program = run(trainings.rank(1, "state"));
  REQUIRE(program.status == 0);
  CHECK_THAT(program.out,
             ContainsSubstring("found nothing") && ContainsSubstring("the newest is global_step3"));
  for (const checkpoint::Found& found : checkpoint::list_checkpoints(trainings.path("out"))) {
    CHECK(checkpoint::verify(found.path).whole());
  }
  std::vector<std::string> words = trainings.train(2, "continued");
  words.insert(words.end(), {"--resume_from_checkpoint", trainings.path("out/checkpoint-3"),
                             "--ignore_data_skip"});
  const test::Outcome command = run(words);
  CAPTURE(command.err);
  CHECK(command.status == 0);
  CHECK(test::read_metrics(trainings.path("continued")).front().at("step") == 4);
  const test::Outcome again = run(trainings.rank(3, "state"));
  CHECK_THAT(again.out, ContainsSubstring(R"(found second after step 2: {"position":2})"));
}

TEST_CASE("Library: evaluation and logits agree", "[library]") {
  Trainings trainings;
  trainings.configure(
      {{"zero_optimization", {{"stage", 3}}}, {"train_micro_batch_size_per_gpu", 2}});
  const test::Outcome one = run(trainings.rank(1, "evaluate"));
  CAPTURE(one.err, one.out);
  REQUIRE(one.status == 0);
  double evaluated = 0;
  double said = 0;
  REQUIRE(std::sscanf(one.out.c_str(), "rank 0 evaluates %lf, its logits say %lf", &evaluated,
                      &said) == 2);
  CHECK(said == Approx(evaluated).epsilon(1e-6));
  CHECK_THAT(one.out, ContainsSubstring(", of 0\n"));
  const test::Outcome two = run(trainings.rank(2, "evaluate"));
  CHECK(two.status == 0);
  CHECK_THAT(two.out, ContainsSubstring(fmt::format("rank 1 evaluates {:.9g}", evaluated)) &&
                          ContainsSubstring(fmt::format(", of {}\n", 20 * 256)));
}

TEST_CASE("Library: a student learns from a frozen teacher beside it", "[library]") {
  Trainings trainings;
  trainings.configure({{"zero_optimization", {{"stage", 3}}}});
  REQUIRE(run(trainings.trainer(1, "teacher", 30)).status == 0);
  const auto distill = [&](int ranks) {
    return run(trainings.command(
        ranks, {DSTRAIN_LIBRARY_DISTILL, trainings.path("teacher"), trainings.config(),
                trainings.text(), trainings.path("student"), "30"}));
  };
  const test::Outcome two = distill(2);
  CAPTURE(two.err);
  REQUIRE(two.status == 0);
  const std::vector<double> losses = losses_of(two.out);
  REQUIRE(losses.size() == 30);
  CHECK(losses.back() < 0.8 * losses.front());
  const std::vector<double> alone = losses_of(distill(1).out);
  REQUIRE(alone.size() == 30);
  for (std::size_t i = 0; i < losses.size(); ++i)
    CHECK(alone[i] == Approx(losses[i]).epsilon(1e-4));
}

TEST_CASE("Library: errors are thrown on every rank before anything is computed", "[library]") {
  Trainings trainings;
  trainings.configure({{"train_micro_batch_size_per_gpu", 2}});
  const test::Outcome ran = run(trainings.rank(2, "refused"));
  CAPTURE(ran.err, ran.out);
  CHECK(ran.status == 0);
  for (const char* line : {
           "token: batch: rank 1 has one that is refused",
           "no labels: batch: no labels for 192 positions: the loss needs one of 256 classes",
           "ignored: step 1: the batch has no label that counts",
           "negative: batch: sequences is -1; it cannot be negative",
           "length: batch: length 33: this engine takes sequences of up to 32",
           "sequences: batch: 192 tokens for 100 sequences of length 32",
           "early step: step: 0 of 3 forward_backward() are done (gradient_accumulation_steps)",
           "client state: save_checkpoint: client_state is no JSON object",
           "open step: evaluate: a step is open after 1 of 3 forward_backward(): call step() first",
           "one too many: forward_backward: all 3 of gradient_accumulation_steps are done",
           "frozen: this engine was made with trains = false: it evaluates, and has no steps",
           "write the value of gradient_clipping, train_batch_size",
           "train_batch_sise: unknown key; did you mean \"train_batch_size\"?",
           "model: Model::from_pretrained nowhere: no such directory",
           "no end: unit one: ends with neither write() nor a loss",
           "no loss: model own: no unit ends with a loss",
           "rows: unit one: computes the loss, and sees each position by itself",
           "unread: model own: has 2 features and 1 target, of which its units read 2 and 0",
           "targets: unit one: mean_squared_error() of 2 features and 1 target",
           "no sizes: model own: Sizes: vocabulary and features are 0; a model reads tokens",
           "no positions: model own: Sizes: positions is 0; give the length of the longest",
           "negative size: model own: Sizes: targets is -1; it cannot be negative",
           "scale: unit one: a factor is nan",
           "rate: unit one: a dropout rate is 1, not at least 0 and below 1",
           "asks: ranks make different calls: rank 0 stop_requested, rank 1 save_requested",
           "asks alone: ranks make different calls: rank 0 stop_requested, rank 1 train_batch of "
           "its",
           "window: unit one: attention() has a negative number of kv_heads, or a negative window",
           "both ways: unit one: attention() with a window is causal",
           "rotary: unit one: a rotary_base is nan",
           "turns: unit one: rotary positions turn pairs of features, and a head has 1",
           "shape: unit one: c.p has a dimension below 1",
           "byte: unit one: the name of a layer is not UTF-8",
           "unread value: unit one: its layers do not fit together: nobody reads value",
           "too many: model own: Sizes: vocabulary is 1099511627776; at most",
           "no name: unit one: a layer with parameters has no name",
           "features: batch: 4 features for 192 positions, of which each has 0",
           "unknown: unit one: no unit before it writes nothing",
           "heads: unit one: 4 features are not 3 queries, 3 keys and 3 values of one width",
           "two ends: unit one: layers follow write() or a loss, which end a unit",
           "calls: ranks make different calls: rank 0 evaluate of its engine 0, rank 1 logits",
           "saves alone: ranks make different calls: rank 0 save_checkpoint of its engine 0, rank "
           "1 "
           "evaluate",
           "loads alone: ranks make different calls: rank 0 evaluate of its engine 0, rank 1 "
           "load_checkpoint",
           "told: forward_backward: rank 0 was told 100 labels and rank 1 101",
           "gathers: gathered_parameters: rank 0 gathers wte.weight, and rank 1 wpe.weight",
           "gathered: parameters are gathered: release() them before any other call",
           "checkpoint itself: load_checkpoint: ",
           "two ranks: this process has or had a dstrain::Rank already",
           "good: taken",
       }) {
    CHECK_THAT(ran.out, ContainsSubstring(line));
  }
}

TEST_CASE("Library: gathered parameters have the current values and accept changes", "[library]") {
  Trainings trainings;
  trainings.configure(json::object());
  const test::Outcome plain = run(trainings.trainer(1, "plain", 4));
  const test::Outcome one = run(trainings.rank(1, "parameters"));
  CAPTURE(one.err, one.out);
  REQUIRE(one.status == 0);
  const std::vector<double> untouched = losses_of(plain.out);
  const std::vector<double> expected = losses_of(one.out);
  REQUIRE(expected.size() == 4);
  CHECK(std::equal(expected.begin(), expected.begin() + 3, untouched.begin()));  // looking is free
  CHECK(expected[3] != untouched[3]);
  const std::string last = one.out.substr(one.out.find("sum "));
  CHECK_THAT(last, ContainsSubstring("near 0.25: 1, of another rank: 0"));
  for (const char* more :
       {R"({"zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 300}})",
        R"({"zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}}})",
        R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme"},
            "offload_param": {"device": "nvme"}}})"}) {
    CAPTURE(more);
    json config = json::parse(more);
    add_disk(config, trainings);
    trainings.configure(config);
    const test::Outcome others = run(trainings.rank(2, "parameters"));
    CAPTURE(others.err);
    REQUIRE(others.status == 0);
    const std::vector<double> losses = losses_of(others.out);
    REQUIRE(losses.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) CHECK(losses[i] == Approx(expected[i]).epsilon(1e-5));
    CHECK_THAT(others.out, ContainsSubstring(last.substr(0, last.find('\n'))));
  }
}

TEST_CASE("Library: a layer of one's own is as good as a built-in one", "[library]") {
  Trainings trainings;
  trainings.configure({{"zero_optimization", {{"stage", 3}}}});
  const test::Outcome ran = run(trainings.rank(2, "layers"));
  CAPTURE(ran.err);
  REQUIRE(ran.status == 0);
  const std::vector<double> losses = losses_of(ran.out);
  REQUIRE(losses.size() == 10);
  CHECK(losses[4] < losses[0]);
  for (std::size_t i = 0; i < 5; ++i) CHECK(losses[5 + i] == Approx(losses[i]).epsilon(1e-6));
}

TEST_CASE("Library: a unit may pass its input through", "[library]") {
  Trainings trainings;
  trainings.configure(json::object());
  const test::Outcome ran = run(trainings.rank(1, "pass"));
  CAPTURE(ran.err);
  REQUIRE(ran.status == 0);
  const std::vector<double> losses = losses_of(ran.out);
  REQUIRE(losses.size() == 6);
  for (std::size_t i = 0; i < 3; ++i) CHECK(losses[3 + i] == losses[i]);
}

TEST_CASE("Library: a model of one's own trains at every stage and comes back", "[library]") {
  std::vector<double> expected;
  for (const char* more :
       {"{}", R"({"zero_optimization": {"stage": 3}})",
        R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})"}) {
    CAPTURE(more);
    Trainings trainings;
    trainings.configure(json::parse(more));
    const auto train = [&](int steps) {
      return run(
          trainings.command(2, {DSTRAIN_LIBRARY_OWN_MODEL, trainings.config(), trainings.text(),
                                trainings.path("out"), fmt::format("{}", steps)}));
    };
    const test::Outcome first = train(4);
    CAPTURE(first.err);
    REQUIRE(first.status == 0);
    const test::Outcome second = train(8);
    REQUIRE(second.status == 0);
    std::vector<double> losses = losses_of(first.out);
    for (const double loss : losses_of(second.out)) losses.push_back(loss);
    REQUIRE(losses.size() == 8);
    CHECK(losses.back() < losses.front());
    if (expected.empty()) expected = losses;
    CHECK(losses == expected);
    const auto after = [&](const std::string& word) {
      return std::stod(second.out.substr(second.out.find(word) + word.size()));
    };
    CHECK(after("read ") == after("trained "));
  }
}

TEST_CASE("Library: regressions and sums of losses follow PyTorch", "[library]") {
  const json golden = test::read_json(test::golden_folder / "regression.json");
  const Kind kind = GENERATE(from_range(std::begin(kinds), std::end(kinds)));
  CAPTURE(kind.name);
  Trainings trainings;
  json config = config_of(kind, trainings);
  config["optimizer"]["params"] = {{"lr", 0.01}, {"weight_decay", 0.01}};
  config["scheduler"] = nullptr;
  config["gradient_clipping"] = 0.4;
  const bool exact = !config.contains("bf16") && !config.contains("fp16");
  if (config.contains("fp16")) config["fp16"]["initial_scale_power"] = 8;  // no step overflows
  trainings.configure(config);
  for (const auto& [mode, steps] : golden.items()) {
    CAPTURE(mode);
    const test::Outcome ran = run(trainings.regression(kind.ranks, mode));
    CAPTURE(ran.err);
    REQUIRE(ran.status == 0);
    const std::vector<double> losses = losses_of(ran.out);
    REQUIRE(losses.size() == steps.size());
    for (std::size_t i = 0; i < losses.size(); ++i) {
      CHECK(losses[i] == Approx(steps[i].at("loss").get<double>()).epsilon(exact ? 2e-6 : 1e-2));
    }
    double loss = 0;
    double said = 0;
    const std::size_t at = ran.out.find("evaluated ");
    REQUIRE(at != std::string::npos);
    REQUIRE(std::sscanf(ran.out.c_str() + at, "evaluated %lf, %*d outputs say %lf", &loss, &said) ==
            2);
    if (mode == "regression" && kind.ranks == 1) CHECK(said == Approx(loss).epsilon(1e-6));
  }
}

TEST_CASE("Library: a regression goes on from its checkpoint to the same bits", "[library]") {
  Trainings trainings;
  trainings.configure(
      {{"train_batch_size", 20}, {"zero_optimization", {{"stage", 2}}}, {"scheduler", nullptr}});
  const auto train = [&](int ranks, const std::string& output, int epochs) {
    const test::Outcome ran =
        run(trainings.command(ranks, {DSTRAIN_LIBRARY_REGRESSION, trainings.config(),
                                      trainings.path(output), fmt::format("{}", epochs)}));
    CAPTURE(ran.err);
    REQUIRE(ran.status == 0);
    return losses_of(ran.out);
  };
  const std::vector<double> whole = train(2, "whole", 6);
  std::vector<double> parts = train(2, "parts", 2);
  for (const double loss : train(2, "parts", 6)) parts.push_back(loss);
  CHECK(parts == whole);
  REQUIRE(whole.size() == 6);
  CHECK(whole.back() < 0.5 * whole.front());
  const std::vector<double> one = train(1, "one", 6);
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(one[i] == Approx(whole[i]).epsilon(1e-5));
}

TEST_CASE("Library: a loop on a GPU follows the one on CPUs", "[library]") {
  Trainings trainings;
  trainings.configure({{"train_micro_batch_size_per_gpu", 3}});
  test::use_test_gpu();
  const auto on = [&](const char* device, const std::vector<std::string>& words) {
    std::vector<std::string> command = words;
    command.insert(command.begin(), {"--device", device, "--oversubscribe"});
    const test::Outcome ran = test::run_command(
        command,
        {.env = {{"OMP_NUM_THREADS", "1"}, {"DSTRAIN_GPU_DIRECTORY", test::test_gpu_directory()}},
         .directory = ""});
    CAPTURE(ran.err);
    CHECK(ran.status == 0);
    return losses_of(ran.out);
  };
  const auto own_model = [&](const char* output) {
    return trainings.command(2, {DSTRAIN_LIBRARY_OWN_MODEL, trainings.config(), trainings.text(),
                                 trainings.path(output), "3"});
  };
  for (const auto& [cpu, gpu] :
       {std::pair{on("cpu", own_model("cpu")), on("cuda", own_model("gpu"))},
        std::pair{on("cpu", trainings.rank(2, "parameters")),
                  on("cuda", trainings.rank(2, "parameters"))},
        std::pair{on("cpu", trainings.regression(2, "both")),
                  on("cuda", trainings.regression(2, "both"))}}) {
    REQUIRE(cpu.size() >= 3);
    REQUIRE(gpu.size() == cpu.size());
    for (std::size_t i = 0; i < cpu.size(); ++i) CHECK(gpu[i] == Approx(cpu[i]).epsilon(1e-6));
  }
}

TEST_CASE("Library: a program answers status and save and stop", "[library]") {
  Trainings trainings;
  trainings.configure(json::object());
  const Launch::Options options{
      .env = {{"OMP_NUM_THREADS", "1"}, {"XDG_RUNTIME_DIR", trainings.path("")}}, .directory = ""};
  Launch launch(trainings.rank(2, "serve"), options);
  REQUIRE(launch.wait_for_output("step 2 "));
  const auto list = [&] {
    return json::parse(test::run_command({"status", "--json"}, options).out).at(0);
  };
  const json before = list();
  CHECK(before.at("step") >= 1);
  CHECK(before.at("steps").is_null());
  CHECK(before.at("loss") > 0);
  CHECK(before.at("tokens_per_second") > 0);
  CHECK(before.at("last_checkpoint").is_null());
  const std::string job = before.at("job");
  for (int i = 0; i < 2; ++i) {
    const test::Outcome saved = test::run_command({"save", job}, options);
    CAPTURE(saved.err);
    REQUIRE(saved.status == 0);
    const fs::path path = saved.out.substr(0, saved.out.size() - 1);
    CHECK(path.parent_path() == trainings.path("out"));
    CHECK(checkpoint::verify(path, checkpoint::Depth::contents).intact());
    CHECK(list().at("last_checkpoint") == path.string());
  }
  CHECK_THAT(test::run_command({"status", job}, options).out,
             ContainsSubstring("last checkpoint " + trainings.path("out").string()));
  CHECK(test::run_command({"stop", job}, options).status == 0);
  launch.wait();
}

TEST_CASE("Library: a program that saves before it fails is restarted as often", "[library]") {
  Trainings trainings;
  trainings.configure(json::object());
  std::vector<std::string> words = trainings.rank(2, "fail");
  REQUIRE(words.front() == "-q");
  words.erase(words.begin());
  words.insert(words.begin(), {"--max_restarts", "1"});
  const test::Outcome ran = run(words);
  CAPTURE(ran.err);
  CHECK(ran.status == 0);
  CHECK(steps_of(ran.out).size() == 4);
  CHECK_THAT(ran.err,
             ContainsSubstring("restart 3, after the program has saved " +
                               (trainings.path("out") / "checkpoint-3").string() + " (0 of 1 "));
}

TEST_CASE("Library: a checkpoint that replaces itself is no progress", "[library]") {
  Trainings trainings;
  trainings.configure(json::object());
  std::vector<std::string> words = trainings.rank(2, "again");
  words.insert(words.begin() + 1, {"--max_restarts", "1"});
  const test::Outcome ran = run(words);
  CAPTURE(ran.err);
  CHECK(ran.status == 7);
  CHECK_THAT(ran.err, ContainsSubstring("--max_restarts 1: giving up after this many"));
}

TEST_CASE("Library: a unit may end with attention", "[library]") {
  Trainings trainings;
  trainings.configure({{"scheduler", nullptr}});
  const test::Outcome ran = run(trainings.rank(2, "attention"));
  CAPTURE(ran.err);
  REQUIRE(ran.status == 0);
  const std::vector<double> losses = losses_of(ran.out);
  REQUIRE(losses.size() == 6);
  for (std::size_t i = 0; i < 3; ++i) CHECK(losses[i] == losses[i + 3]);
}

TEST_CASE("Library: numbers that are none are refused unless nothing reads them", "[library]") {
  Trainings trainings;
  trainings.configure({{"scheduler", nullptr}});
  const test::Outcome ran = run(trainings.regression(2, "spoiled"));
  CAPTURE(ran.err, ran.out);
  CHECK(ran.status == 0);
  CHECK_THAT(ran.out,
             ContainsSubstring("feature: batch: a feature of sequence 0, position 2, is") &&
                 ContainsSubstring("target: batch: a target of sequence 0, position 1, is") &&
                 ContainsSubstring("ignored target: taken"));
}

TEST_CASE("Library: ranks that differ are refused", "[library]") {
  Trainings trainings;
  trainings.configure(json::object());
  const test::Outcome ran = run(trainings.rank(2, "differ"));
  CHECK(ran.status == 2);
  CHECK_THAT(ran.err, ContainsSubstring("rank 0 has length 32") &&
                          ContainsSubstring("rank 1 has length 31") &&
                          ContainsSubstring("all ranks of a run need the same options"));
  const test::Outcome weighed = run(trainings.rank(2, "weigh"));
  CHECK(weighed.status == 2);
  CHECK_THAT(weighed.err, ContainsSubstring("losses with the factors 0.25"));
}
