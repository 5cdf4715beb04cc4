// dstrain generate on several ranks and in batches: the texts do not depend on them.
#include <set>

#include <fmt/format.h>

#include "tests/e2e/generate_run.h"
#include "tests/support/catch.h"

using namespace dstrain;
using nlohmann::json;
using test::Words;
namespace fs = std::filesystem;

namespace {

using Ids = std::vector<int>;

/// Some ids below `vocabulary`.
Ids some_ids(int count, int seed, int vocabulary) {
  Ids ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * i * 7 + 31 * seed + 5 * i) % vocabulary);
  return ids;
}

/// Prompts of many lengths; of a decoder, up to its positions.
std::vector<Ids> some_prompts(const json& config) {
  const int vocabulary = config.at("vocab_size");
  std::vector<Ids> prompts;
  int seed = 0;
  for (const int length : {5, 1, 32, 17, 2, 29, 11, 16, 3, 24, 8}) {
    prompts.push_back(some_ids(length, ++seed, vocabulary));
  }
  return prompts;
}

/// What the texts must not depend on.
struct Way {
  int ranks = 1;
  int batch = 1;
  json param = "whole";  ///< where stage 3 has parameters; "whole": no stage 3
};

std::string described(const Way& way) {
  return fmt::format("{} ranks, batch {}, {}", way.ranks, way.batch, way.param.dump());
}

const std::vector<Way>& ways() {
  static const json device;
  static const json cpu{{"device", "cpu"}};
  static const json nvme{{"device", "nvme"}};
  static const std::vector<Way> all{
      {1, 3},      {1, 16},         {2, 1},         {2, 3},         {3, 16},
      {3, 1},      {1, 16, device}, {2, 3, device}, {3, 1, device}, {3, 16, device},
      {1, 3, cpu}, {2, 16, cpu},    {1, 16, nvme},  {3, 3, nvme}};
  return all;
}

std::vector<json> run(const Way& way, const fs::path& model, Words words) {
  const test::TempDir folder;
  words = test::joined(words, {"--batch_size", std::to_string(way.batch)});
  if (way.param != "whole") {
    words = test::joined(words, {"--deepspeed", test::stage3_config(folder.path(), way.param)});
  }
  return test::generate(test::cpu_ranks(way.ranks), model, words).texts();
}

const Words sampling{"--do_sample", "--temperature", "1.3", "--top_k",          "0", "--top_p",
                     "0.97",        "--seed",        "11",  "--max_new_tokens", "18"};

}  // namespace

TEST_CASE("generate: sampled texts depend on neither batch nor ranks nor where the weights are",
          "[e2e][generate]") {
  const std::string name = GENERATE("model", "families/llama3", "families/mistral",
                                    "families/phi3_longrope", "pairs/t5_gated");
  const Words type = GENERATE(values<Words>({{}, {"--bf16"}, {"--fp16"}}));
  CAPTURE(name, type);
  const test::ModelCopy model(name);
  std::vector<Ids> prompts = some_prompts(test::read_json(model.directory() / "config.json"));
  const auto file = model.folder() / "prompts.jsonl";
  const Words words = test::joined(test::joined(sampling, type), {"--prompt_file", file});
  test::write_prompts(file, test::id_prompts(prompts));
  std::vector<json> expected = run({}, model.directory(), words);
  REQUIRE(expected.size() == prompts.size());
  std::set<json> different(expected.begin(), expected.end());
  CHECK(different.size() == expected.size());
  for (const Way& way : ways()) {
    INFO(described(way));
    CHECK(run(way, model.directory(), words) == expected);
  }
  std::reverse(prompts.begin(), prompts.end());
  std::rotate(prompts.begin(), prompts.begin() + 4, prompts.end());
  std::reverse(expected.begin(), expected.end());
  std::rotate(expected.begin(), expected.begin() + 4, expected.end());
  test::write_prompts(file, test::id_prompts(prompts));
  CHECK(run({1, 3}, model.directory(), words) == expected);
  CHECK(run({2, 2}, model.directory(), words) == expected);
}

TEST_CASE("generate: a model stored in bf16 gives the same texts everywhere", "[e2e][generate]") {
  const test::TempDir folder;
  const fs::path model = folder.path() / "model";
  const test::TrainRun trained =
      test::run_train(1, nullptr, model,
                      {"--model_name_or_path", "byte_model", "--bf16", "--train_file",
                       "records.jsonl", "--block_size", "32", "--max_steps", "1"});
  CAPTURE(trained.err);
  REQUIRE(trained.status == 0);
  const auto file = folder.path() / "prompts.jsonl";
  test::write_prompts(file, test::id_prompts(some_prompts({{"vocab_size", 256}})));
  const Words words = test::joined(sampling, {"--prompt_file", file});
  const test::TextRun first = test::generate(model, words);
  CHECK_THAT(first.err, Catch::Matchers::ContainsSubstring("in bf16 on 1 rank"));
  for (const Way& way : ways()) {
    INFO(described(way));
    CHECK(run(way, model, words) == first.texts());
  }
}

TEST_CASE("generate: variants of a prompt differ and do not depend on their number",
          "[e2e][generate]") {
  const std::string name = GENERATE("model", "pairs/t5");
  CAPTURE(name);
  const test::ModelCopy model(name);
  const auto file = model.folder() / "prompts.jsonl";
  const std::vector<Ids> prompts{{5, 6, 7}, {8}, {9, 10, 11, 12, 13}};
  test::write_prompts(file, test::id_prompts(prompts));
  const auto variants = [&](std::size_t count, const Way& way) {
    return run(way, model.directory(),
               test::joined(sampling, {"--prompt_file", file, "--num_return_sequences",
                                       std::to_string(count)}));
  };
  const std::vector<json> four = variants(4, {});
  REQUIRE(four.size() == 12);
  CHECK(std::set<json>(four.begin(), four.end()).size() == 12);
  CHECK(variants(4, {2, 3}) == four);
  CHECK(variants(4, {3, 16, json()}) == four);
  for (const std::size_t count : std::vector<std::size_t>{1, 2, 5}) {
    const std::vector<json> some = variants(count, {2, 3});
    REQUIRE(some.size() == 3 * count);
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      for (std::size_t j = 0; j < std::min<std::size_t>(count, 4); ++j) {
        CHECK(some[i * count + j] == four[i * 4 + j]);
      }
    }
  }
  // The model's own number holds when sampling, and not otherwise.
  const test::ModelCopy said(name, {{"num_return_sequences", 4}});
  const Words words{"--prompt_file", file};
  CHECK(run({}, said.directory(), test::joined(sampling, words)) == four);
  CHECK(run({}, said.directory(), words).size() == 3);
}

TEST_CASE("generate: ranks that finish early wait for the others", "[e2e][generate]") {
  const test::ModelCopy model("families/llama3");
  model.set({{"max_position_embeddings", 256}});
  const int late = GENERATE(0, 1, 2);
  CAPTURE(late);
  // One text has 200 tokens, and the others end at the positions after a few.
  std::vector<Ids> prompts;
  for (int i = 0; i < 7; ++i) {
    prompts.push_back(i == late ? Ids{3, 4} : some_ids(250 + i % 5, i, 160));
  }
  const auto file = model.folder() / "prompts.jsonl";
  test::write_prompts(file, test::id_prompts(prompts));
  const Words words{"--prompt_file", file, "--max_new_tokens", "200"};
  const std::vector<json> expected = run({}, model.directory(), words);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::size_t count = static_cast<int>(i) == late ? 200 : 257 - prompts[i].size();
    CHECK(expected[i].at("completion_ids").size() == count);
  }
  for (const Way& way : {Way{2, 2, json()}, Way{3, 1, json()}, Way{3, 16, json()}, Way{3, 2},
                         Way{2, 16, json{{"device", "cpu"}}}}) {
    INFO(described(way));
    CHECK(run(way, model.directory(), words) == expected);
  }
}

TEST_CASE("generate: an encoder runs on some ranks while others decode or have finished",
          "[e2e][generate]") {
  const std::string name = GENERATE("pairs/t5", "pairs/t5_gated");
  const test::ModelCopy model(name);
  std::vector<Ids> prompts;
  for (int i = 0; i < 23; ++i) prompts.push_back(some_ids(1 + i * 5 % 13, i, 61));
  const auto file = model.folder() / "prompts.jsonl";
  test::write_prompts(file, test::id_prompts(prompts));
  const Words words{"--prompt_file", file,  "--do_sample",      "--top_k", "0",
                    "--temperature", "1.6", "--max_new_tokens", "60"};
  const std::vector<json> expected = run({}, model.directory(), words);
  std::set<std::size_t> lengths;
  for (const json& text : expected) lengths.insert(text.at("completion_ids").size());
  CHECK(lengths.size() > 8);
  for (const Way& way : {Way{2, 2, json()}, Way{3, 1, json()}, Way{3, 4, json()}, Way{2, 3},
                         Way{3, 3, json{{"device", "cpu"}}}}) {
    INFO(described(way));
    CHECK(run(way, model.directory(), words) == expected);
  }
}

TEST_CASE("generate: there may be more ranks than prompts", "[e2e][generate]") {
  const std::string name = GENERATE("model", "pairs/t5");
  const Words words{"--prompt", "7", "--tokenizer", "byte", "--max_new_tokens", "9"};
  const test::ModelCopy model(name);
  const std::vector<json> expected = run({}, model.directory(), words);
  REQUIRE(expected.size() == 1);
  CHECK(run({3, 16}, model.directory(), words) == expected);
  CHECK(run({3, 16, json()}, model.directory(), words) == expected);
  CHECK(run({2, 1, json{{"device", "cpu"}}}, model.directory(), words) == expected);
}

TEST_CASE("generate: two reviews on two ranks with their weights shared out",
          "[e2e][generate][golden]") {
  const json golden = test::read_json(test::golden_folder / "generate.json").at("reviews");
  const test::ModelCopy model("choices/t5");
  model.add_tokenizer("t5");
  // As DeepSpeed's users write it for inference with a T0.
  const int width = 16;
  const json config{{"fp16", {{"enabled", false}}},
                    {"bf16", {{"enabled", false}}},
                    {"zero_optimization",
                     {{"stage", 3},
                      {"offload_param", {{"device", "cpu"}, {"pin_memory", true}}},
                      {"overlap_comm", true},
                      {"contiguous_gradients", true},
                      {"reduce_bucket_size", width * width},
                      {"stage3_prefetch_bucket_size", width * width * 9 / 10},
                      {"stage3_param_persistence_threshold", 10 * width}}},
                    {"steps_per_print", 2000},
                    {"train_batch_size", 2},
                    {"train_micro_batch_size_per_gpu", 1},
                    {"wall_clock_breakdown", false}};
  const auto file = test::write_file(model.folder() / "ds.json", config.dump());
  const Words length{"--max_new_tokens", "20"};
  Words both = length;
  for (const json& text : golden.at("texts")) both = test::joined(both, {"--prompt", text});
  const test::TextRun two = test::generate(test::cpu_ranks(2), model.directory(),
                                           test::joined(both, {"--deepspeed", file}));
  const std::vector<json> texts = two.texts();
  REQUIRE(texts.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(texts[i].at("completion_ids") == golden.at("completions")[i]);
    const Words own = test::joined(length, {"--prompt", golden.at("texts")[i]});
    CHECK(test::generate(model.directory(), own).text() == texts[i]);
  }
  CHECK(texts[0] != texts[1]);
}
