// Losses, norms and rates against PyTorch's; see tests/golden/README.md.
#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/strict_safetensors.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using nlohmann::json;
using test::golden_folder;
using test::worst_relative;

namespace {

struct Place {
  int ranks = 1;
  int stage = 0;
  const char* half = nullptr;  ///< "bf16" or "fp16"
};

test::TrainRun run_case(const json& golden, Place place, const test::TempDir& folder) {
  const auto [ranks, stage, half] = place;
  json config = golden.at("ds_config");
  config["zero_optimization"]["stage"] = stage;
  if (half != nullptr) config[half]["enabled"] = true;
  if (stage == 3) config["zero_optimization"]["stage3_param_persistence_threshold"] = 300;
  return test::run_train(ranks, config, folder.path() / "out", golden.at("arguments"));
}

/// Twice what PyTorch's own runs in that type are apart: see tests/golden/README.md.
struct Half {
  const char* name;
  double loss_tolerance;
  double norm_tolerance;
  double rounding;  ///< losses are apart by this at least: it is no fp32 run
};

}  // namespace

TEST_CASE("train: every stage and rank count follows PyTorch", "[e2e][golden]") {
  const std::string name = GENERATE("plain", "accumulation", "weight_decay", "clipping",
                                    "everything", "one_cycle", "lamb", "lion");
  const int ranks = GENERATE(1, 2, 3);
  const json golden = test::read_json(golden_folder / (name + ".json"));
  const test::TempDir folder;
  for (const int stage : {0, 1, 2, 3}) {
    if (ranks == 1 && (stage == 1 || stage == 2)) continue;  // nothing is shared out
    CAPTURE(name, ranks, stage);
    const test::TrainRun run = run_case(golden, {ranks, stage}, folder);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    const json& steps = golden.at("steps");
    REQUIRE(run.metrics.size() == steps.size());
    CHECK(worst_relative(run.metrics, steps, "loss") < 1e-5);
    CHECK(worst_relative(run.metrics, steps, "grad_norm") < 1e-4);
    CHECK(worst_relative(run.metrics, steps, "learning_rate") < 1e-12);
  }
}

TEST_CASE("train: completions of JSON lines follow transformers", "[e2e][golden]") {
  const std::string name = GENERATE("records_packed", "records_unpacked");
  const int ranks = GENERATE(1, 2);
  const json golden = test::read_json(golden_folder / (name + ".json"));
  const test::TempDir folder;
  json config = golden.at("ds_config");
  config["zero_optimization"]["stage"] = 2;
  const test::TrainRun run =
      test::run_train(ranks, config, folder.path() / "out", golden.at("arguments"),
                      {{"DSTRAIN_CACHE", (folder.path() / "cache").string()}});
  CAPTURE(name, ranks, run.err);
  REQUIRE(run.status == 0);
  const json& steps = golden.at("steps");
  REQUIRE(run.metrics.size() == steps.size());
  CHECK(worst_relative(run.metrics, steps, "loss") < 1e-5);
  CHECK(worst_relative(run.metrics, steps, "grad_norm") < 1e-4);
  CHECK_THAT(run.err,
             Catch::Matchers::ContainsSubstring("2 of 150 records are longer than block_size 32"));
  CHECK_THAT(run.err,
             Catch::Matchers::ContainsSubstring("1 of 150 records have no label that counts"));
}

TEST_CASE("train: isolated records give the loss of records in separate rows", "[e2e][documents]") {
  const test::TempDir folder;
  const auto held_out_loss = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--model_name_or_path", "byte_model",
                                       "--train_file",         "records.jsonl",
                                       "--validation_file",    "records.jsonl",
                                       "--block_size",         "32",
                                       "--learning_rate",      "0",
                                       "--max_steps",          "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const test::TrainRun run =
        test::run_train(2, nullptr, folder.path() / "out", arguments,
                        {{"DSTRAIN_CACHE", (folder.path() / "cache").string()}});
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    return run.metrics.back().at("eval_loss").get<double>();
  };
  const double alone = held_out_loss({"--packing", "false"});
  CHECK(held_out_loss({"--reset_attention_mask", "--reset_position_ids"}) ==
        Catch::Approx(alone).epsilon(1e-7));
  CHECK(held_out_loss({}) != Catch::Approx(alone).epsilon(1e-4));
}

TEST_CASE("train: a run resumes only with the same document isolation", "[e2e][documents]") {
  const test::TempDir folder;
  const auto train = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--model_name_or_path", "byte_model",   "--train_file",
                                       "records.jsonl",        "--block_size", "32"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run_train(1, nullptr, folder.path() / "out", arguments,
                           {{"DSTRAIN_CACHE", (folder.path() / "cache").string()}});
  };
  REQUIRE(train({"--reset_attention_mask", "--max_steps", "1", "--save_steps", "1"}).status == 0);
  const test::TrainRun other = train({"--max_steps", "2", "--resume_from_checkpoint", "latest"});
  CHECK(other.status == 2);
  CHECK_THAT(other.err, Catch::Matchers::ContainsSubstring("set --reset_attention_mask"));
}

TEST_CASE("train: bad JSON lines are reported before a rank starts", "[e2e][golden]") {
  const test::TempDir folder;
  const std::filesystem::path path = folder.path() / "d.jsonl";
  const auto train = [&](const std::string& lines) {
    std::ofstream(path) << lines;
    return test::run_train(
        2, nullptr, folder.path() / "out",
        {"--model_name_or_path", "byte_model", "--train_file", path.string(), "--max_steps", "1"},
        {{"DSTRAIN_CACHE", (folder.path() / "cache").string()}});
  };
  const test::TrainRun chat =
      train("{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}\n");
  CHECK(chat.status == 2);
  CHECK_THAT(chat.err, Catch::Matchers::ContainsSubstring(
                           "d.jsonl:1: a conversation: the byte tokenizer has no chat "
                           "template") &&
                           !Catch::Matchers::ContainsSubstring("rank "));
  const test::TrainRun broken = train("{\"text\": \"a\"}\n{\"text\": \"b\"\n");
  CHECK(broken.status == 2);
  CHECK_THAT(broken.err, Catch::Matchers::ContainsSubstring("d.jsonl:2:") &&
                             !Catch::Matchers::ContainsSubstring("rank "));
}

TEST_CASE("train: 16-bit runs stay within tolerance of PyTorch in float64", "[e2e][golden]") {
  const Half half = GENERATE(Half{"bf16", 5e-4, 8e-3, 1e-5}, Half{"fp16", 1.1e-4, 1.8e-3, 1e-6});
  const std::string name = GENERATE("plain", "everything", "lamb");
  const int ranks = GENERATE(1, 2, 3);
  const json golden = test::read_json(golden_folder / (name + ".json"));
  const test::TempDir folder;
  for (const int stage : {0, 1, 2, 3}) {
    if (ranks == 1 && (stage == 1 || stage == 2)) continue;  // nothing is shared out
    CAPTURE(half.name, name, ranks, stage);
    const test::TrainRun run = run_case(golden, {ranks, stage, half.name}, folder);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    const json& steps = golden.at("steps");
    REQUIRE(run.metrics.size() == steps.size());
    CHECK(worst_relative(run.metrics, steps, "loss") < half.loss_tolerance);
    CHECK(worst_relative(run.metrics, steps, "grad_norm") < half.norm_tolerance);
    CHECK(worst_relative(run.metrics, steps, "loss") > half.rounding);
    CHECK(run.metrics.back().at("skipped_steps") == 0);
  }
}

TEST_CASE("train: states in 16 bits lose as much accuracy as PyTorch's", "[e2e][golden]") {
  struct Kept {
    Half half;
    json keys;
  };
  const json with_masters{{"bf16", {{"bf16_master_weights_and_grads", true}}}};
  json with_states = with_masters;
  with_states["bf16"]["bf16_optimizer_states"] = true;
  const Kept kept = GENERATE_COPY(
      Kept{{"bf16", 7.5e-4, 7e-3, 1e-5}, {{"data_types", {{"grad_accum_dtype", "bf16"}}}}},
      Kept{{"bf16", 1.8e-3, 2.2e-2, 1e-4}, with_masters},
      Kept{{"bf16", 1.8e-3, 2.2e-2, 1e-4}, with_states},
      Kept{{"fp16", 1.8e-4, 2.2e-3, 1e-5}, {{"fp16", {{"fp16_master_weights_and_grads", true}}}}});
  const std::string name = GENERATE("everything", "lamb");
  const int ranks = GENERATE(1, 3);
  json golden = test::read_json(golden_folder / (name + ".json"));
  golden["ds_config"].update(kept.keys);
  const test::TempDir folder;
  for (const int stage : {0, 3}) {
    CAPTURE(kept.keys.dump(), name, ranks, stage);
    const test::TrainRun run = run_case(golden, {ranks, stage, kept.half.name}, folder);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    const json& steps = golden.at("steps");
    REQUIRE(run.metrics.size() == steps.size());
    CHECK(worst_relative(run.metrics, steps, "loss") < kept.half.loss_tolerance);
    CHECK(worst_relative(run.metrics, steps, "grad_norm") < kept.half.norm_tolerance);
    CHECK(worst_relative(run.metrics, steps, "loss") > kept.half.rounding);
  }
}

TEST_CASE("train: overflowing steps are skipped", "[e2e][golden]") {
  const json golden = test::read_json(golden_folder / "overflow.json");
  const int ranks = GENERATE(1, 2, 3);
  const test::TempDir folder;
  for (const int stage : {0, 2, 3}) {
    CAPTURE(ranks, stage);
    const test::TrainRun run = run_case(golden, {ranks, stage, "fp16"}, folder);
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
    std::vector<json> found;
    json expected = json::array();
    double scale = 0x1p24;
    int skipped = 0;
    for (std::size_t i = 0; i < run.metrics.size(); ++i) {
      const json& step = golden.at("steps")[i];
      CHECK(run.metrics[i].at("loss_scale") == scale);
      if (step.contains("skipped")) {
        scale /= 2;
        ++skipped;
      } else {
        found.push_back(run.metrics[i]);
        expected.push_back(step);
      }
      CHECK(run.metrics[i].at("skipped_steps") == skipped);
    }
    CHECK(skipped == 3);
    CHECK_THAT(run.out,
               Catch::Matchers::ContainsSubstring("3 of 20 steps overflowed and were left out"));
    CHECK(worst_relative(run.metrics, golden.at("steps"), "learning_rate") < 1e-12);
    CHECK(worst_relative(found, expected, "loss") < 1.1e-4);
    CHECK(worst_relative(found, expected, "grad_norm") < 1.8e-3);
    CHECK_THAT(run.err, Catch::Matchers::ContainsSubstring("step 1: OVERFLOW! gradients of ") &&
                            Catch::Matchers::ContainsSubstring(
                                "the loss scale is 2097152 now, and was 4194304"));
  }
}

TEST_CASE("train: a loss scale that is far too large shrinks until steps succeed", "[e2e][fp16]") {
  json golden = test::read_json(golden_folder / "overflow.json");
  golden["ds_config"]["fp16"]["initial_scale_power"] = 40;
  golden["arguments"].back() = "30";
  const test::TempDir folder;
  const test::TrainRun run = run_case(golden, {2, 2, "fp16"}, folder);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CHECK(run.metrics.back().at("skipped_steps") == 19);
  CHECK(run.metrics.back().at("loss_scale") == 0x1p21);
  CHECK(run.metrics.back().at("loss").get<double>() < 5.4);
}

TEST_CASE("train: a loss scale that cannot shrink ends the run", "[e2e][fp16]") {
  json golden = test::read_json(golden_folder / "overflow.json");
  golden["ds_config"]["fp16"]["min_loss_scale"] = 0x1p22;
  const test::TempDir folder;
  const test::TrainRun run = run_case(golden, {2, 2, "fp16"}, folder);
  CAPTURE(run.err);
  CHECK(run.status == 1);
  CHECK_THAT(run.err,
             Catch::Matchers::ContainsSubstring("step 3: ") &&
                 Catch::Matchers::ContainsSubstring("The loss scale is at its minimum, 4194304"));
}

TEST_CASE("train: the number of consecutive overflows is limited", "[e2e][fp16]") {
  json golden = test::read_json(golden_folder / "plain.json");
  golden["ds_config"]["optimizer"]["params"]["lr"] = 1e30;
  golden["arguments"].insert(golden["arguments"].end(), {"--max_skipped_steps", "3"});
  const char* const half = GENERATE(as<const char*>{}, nullptr, "bf16");
  const test::TempDir folder;
  const test::TrainRun run = run_case(golden, {2, GENERATE(0, 3), half}, folder);
  CAPTURE(run.err);
  CHECK(run.status == 1);
  CHECK_THAT(run.err, Catch::Matchers::ContainsSubstring("OVERFLOW!") &&
                          Catch::Matchers::ContainsSubstring("3 in a row of at most 3") &&
                          Catch::Matchers::ContainsSubstring("after 3 others in a row"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "out/model.safetensors"));
}

TEST_CASE("train: fp16 begins with a scale of its own after a run in fp32", "[e2e][fp16]") {
  json golden = test::read_json(golden_folder / "plain.json");
  const test::TempDir folder;
  for (const char* const word : {"--save_steps", "10"}) golden["arguments"].emplace_back(word);
  REQUIRE(run_case(golden, {2, 2}, folder).status == 0);
  for (const char* const word : {"--max_steps", "22", "--resume_from_checkpoint", "latest"}) {
    golden["arguments"].emplace_back(word);
  }
  const test::TrainRun run = run_case(golden, {2, 2, "fp16"}, folder);
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CHECK(run.metrics.back().at("loss_scale") == 65536);
  CHECK_THAT(run.err, Catch::Matchers::ContainsSubstring("it begins at 65536"));
}

TEST_CASE("train: fp16 refuses weights that it cannot hold", "[e2e][fp16]") {
  json golden = test::read_json(golden_folder / "plain.json");
  const test::TempDir folder;
  const std::filesystem::path model = folder.path() / "model";
  std::filesystem::copy(golden_folder / "model", model);
  const std::string weights = (model / "model.safetensors").string();
  std::string bytes = test::read_bytes(weights);
  const float large = 65520;
  std::memcpy(bytes.data() + bytes.size() - sizeof(large), &large, sizeof(large));
  std::ofstream(weights, std::ios::binary) << bytes;
  golden["arguments"][1] = model.string();
  const test::TrainRun run = run_case(golden, {2, GENERATE(0, 3), "fp16"}, folder);
  CAPTURE(run.err);
  CHECK(run.status == 2);
  CHECK_THAT(run.err, Catch::Matchers::ContainsSubstring("wte.weight holds 65520") ||
                          Catch::Matchers::ContainsSubstring("wpe.weight holds 65520"));
  CHECK_THAT(run.err, Catch::Matchers::ContainsSubstring("which is beyond fp16; train in bf16"));
}

TEST_CASE("train: summed gradients are the mean ones times the ranks", "[e2e][golden]") {
  json golden = test::read_json(golden_folder / "plain.json");
  golden["ds_config"]["gradient_allreduce_op"] = "sum";
  const int stage = GENERATE(0, 2);
  const test::TempDir folder;
  const test::TrainRun run = run_case(golden, {2, stage}, folder);
  REQUIRE(run.status == 0);
  for (json& step : golden["steps"]) step["grad_norm"] = 2 * step["grad_norm"].get<double>();
  CHECK(worst_relative(run.metrics, golden["steps"], "grad_norm") < 1e-4);
  CHECK(worst_relative(run.metrics, golden["steps"], "loss") < 1e-5);
}

TEST_CASE("train: the stages leave the same model file", "[e2e][golden]") {
  const char* const half = GENERATE(as<const char*>{}, nullptr, "bf16", "fp16");
  const json golden = test::read_json(golden_folder / "clipping.json");
  const test::TempDir folder;
  const std::filesystem::path weights = folder.path() / "out/model.safetensors";
  REQUIRE(run_case(golden, {2, 0, half}, folder).status == 0);
  const std::string reference = test::read_bytes(weights);
  const std::size_t data_bytes = 65'856 * (half != nullptr ? 2 : 4);
  CHECK(reference.size() > data_bytes);
  CHECK(reference.size() < data_bytes + 8192);
  CHECK(test::safetensors_faults(weights).empty());
  for (const int stage : {1, 2, 3}) {
    REQUIRE(run_case(golden, {2, stage, half}, folder).status == 0);
    CHECK((test::read_bytes(weights) == reference));
  }
}
