// dstrain evaluate: losses of data, and answers to questions, against transformers'.
#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/e2e/train_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::Outcome;
using Words = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// `dstrain LAUNCH evaluate --model_name_or_path MODEL ARGUMENTS` in tests/golden.
struct Evaluation {
  Evaluation(const Words& launch_options, const std::string& model, const Words& arguments) {
    test::Launch launch(
        joined(joined(launch_options, {"evaluate", "--model_name_or_path", model}), arguments),
        {.env = {}, .directory = test::golden_folder.string()});
    status = launch.wait();
    out = launch.out();
    err = launch.err();
  }
  [[nodiscard]] json result() const {
    require_done();
    return json::parse(out);
  }
  void require_done() const {
    CAPTURE(out, err);
    REQUIRE(status == 0);
  }
  int status;
  std::string out;
  std::string err;
};

json evaluate(const std::string& model, const Words& arguments) {
  return Evaluation({}, model, arguments).result();
}

bool is_near(double found, double expected) {
  return std::abs(found - expected) <= 1e-6 * std::abs(expected);
}

Words ranks(int count) {
  return {"--num_gpus", std::to_string(count), "--device", "cpu"};
}

/// A file of a configuration, in `folder`.
std::string write_config(const fs::path& folder, const json& config) {
  const fs::path path = folder / "ds.json";
  std::ofstream(path) << config;
  return path.string();
}

std::string write_lines(const fs::path& path, const std::vector<std::string>& lines) {
  std::ofstream file(path);
  for (const std::string& line : lines) file << line << "\n";
  return path.string();
}

/// What make_questions.py has made of a model.
struct Choices {
  explicit Choices(const std::string& name)
      : model("choices/" + name),
        made(test::read_json(test::golden_folder / model / "choices.json")),
        tokenizer("tokenizers/" + made.at("tokenizer").get<std::string>()) {}

  /// By question, the choice with the largest value.
  [[nodiscard]] std::vector<std::size_t> best(bool per_byte) const {
    std::vector<std::size_t> found;
    for (const json& question : made.at("questions")) {
      const auto value = [&](std::size_t choice) {
        const auto bytes = question.at("choices")[choice].get<std::string>().size();
        const double sum = question.at("log_likelihoods")[choice];
        return per_byte ? sum / static_cast<double>(bytes) : sum;
      };
      std::size_t best = 0;
      for (std::size_t choice = 1; choice < question.at("choices").size(); ++choice) {
        if (value(choice) > value(best)) best = choice;
      }
      found.push_back(best);
    }
    return found;
  }
  [[nodiscard]] std::string write(const fs::path& path,
                                  const std::vector<std::size_t>& golds) const {
    std::vector<std::string> lines;
    for (const json& question : made.at("questions")) {
      const json line{{"query", question.at("query")},
                      {"choices", question.at("choices")},
                      {"gold", golds[lines.size()]}};
      lines.push_back(line.dump());
    }
    return write_lines(path, lines);
  }

  std::string model;
  json made;
  std::string tokenizer;
};

}  // namespace

TEST_CASE("evaluate: a text has the loss and the bits per byte of transformers",
          "[e2e][evaluate][golden]") {
  const Choices golden(GENERATE("gpt2", "llama"));
  const json& text = golden.made.at("text");
  const Evaluation run({}, golden.model,
                       {"--tokenizer", golden.tokenizer, "--validation_file", "choices/text.txt",
                        "--block_size", std::to_string(text.at("block_size").get<int>())});
  const json result = run.result();
  CHECK(is_near(result.at("eval_loss"), text.at("eval_loss")));
  CHECK(is_near(result.at("bits_per_byte"), text.at("bits_per_byte")));
  CHECK(result.at("tokens") == text.at("tokens"));
  CHECK(result.at("perplexity") == std::exp(result.at("eval_loss").get<double>()));
  CHECK(result.at("samples").get<int>() * text.at("block_size").get<int>() == text.at("tokens"));
  CHECK(result.at("eval_samples_per_second").get<double>() > 0);
  CHECK(result.size() == 7);
  CHECK_THAT(run.err, ContainsSubstring("held-out loss ") && ContainsSubstring(" bits per byte"));
}

TEST_CASE("evaluate: the first batch of every golden run has its first loss",
          "[e2e][evaluate][golden]") {
  const std::string path = GENERATE(
      "plain.json", "records_packed.json", "records_unpacked.json", "families/llama3/run.json",
      "families/mistral/run.json", "families/qwen3/run.json", "families/phi3_longrope/run.json",
      "families/gpt2_options/run.json", "pairs/t5/run.json", "pairs/t5_gated/run.json");
  CAPTURE(path);
  const json golden = test::read_json(test::golden_folder / path);
  const json& typed = golden.at("arguments");
  Words arguments;
  std::string model;
  for (std::size_t i = 0; i + 1 < typed.size(); ++i) {
    const std::string name = typed[i];
    const std::string value = typed[i + 1];
    if (name == "--model_name_or_path") model = value;
    if (name == "--train_file") arguments = joined(arguments, {"--validation_file", value});
    for (const char* const same :
         {"--block_size", "--packing", "--max_source_length", "--max_target_length"}) {
      if (name == same) arguments = joined(arguments, {name, value});
    }
  }
  const int batch = golden.at("ds_config").at("train_batch_size");
  arguments = joined(arguments, {"--max_eval_samples", std::to_string(batch),
                                 "--per_device_eval_batch_size", "5"});
  const json result = evaluate(model, arguments);
  CHECK(is_near(result.at("eval_loss"), golden.at("steps")[0].at("loss")));
  CHECK(result.at("samples") == batch);
}

TEST_CASE("evaluate: the result does not depend on ranks or on where the weights are",
          "[e2e][evaluate]") {
  const test::TempDir folder;
  const Words data{"--validation_file", "records.jsonl", "--block_size", "32"};
  const json one = evaluate("byte_model", data);
  const json param = GENERATE(json(), json{{"device", "cpu"}}, json{{"device", "nvme"}});
  const int count = GENERATE(1, 2, 3);
  CAPTURE(param, count);
  json sharding{{"stage", 3}, {"stage3_param_persistence_threshold", 300}};
  if (!param.is_null()) sharding["offload_param"] = param;
  if (param.is_object() && param.at("device") == "nvme") {
    sharding["offload_param"]["nvme_path"] = (folder.path() / "nvme").string();
    fs::create_directory(folder.path() / "nvme");
  }
  const std::string config = write_config(folder.path(), {{"zero_optimization", sharding}});
  const Evaluation run(ranks(count), "byte_model", joined(data, {"--deepspeed", config}));
  const json result = run.result();
  CHECK_THAT(run.err, ContainsSubstring("ZeRO stage 3"));
  CHECK(is_near(result.at("eval_loss"), one.at("eval_loss")));
  CHECK(is_near(result.at("bits_per_byte"), one.at("bits_per_byte")));
  CHECK(result.at("tokens") == one.at("tokens"));
  CHECK(result.at("samples") == one.at("samples"));
}

TEST_CASE("evaluate: keys for training are accepted and named once", "[e2e][evaluate]") {
  const test::TempDir folder;
  const std::string config = write_config(
      folder.path(),
      {{"train_batch_size", 7},
       {"optimizer", {{"type", "AdamW"}, {"params", {{"lr", "auto"}}}}},
       {"scheduler", {{"type", "WarmupLR"}, {"params", {{"warmup_num_steps", 3}}}}},
       {"gradient_clipping", 1.0},
       {"bf16", {{"enabled", "auto"}}},
       {"zero_optimization",
        {{"stage", 2}, {"offload_optimizer", {{"device", "nvme"}, {"nvme_path", "/none"}}}}}});
  const Evaluation run(
      ranks(2), "model",
      {"--validation_file", "tokens.bin", "--block_size", "32", "--deepspeed", config});
  run.require_done();
  CHECK_THAT(run.err,
             ContainsSubstring("nothing is trained, so these have no effect: gradient_clipping, "
                               "optimizer, scheduler, train_batch_size, "
                               "zero_optimization.offload_optimizer") &&
                 ContainsSubstring("fp32, 2 ranks, ZeRO stage 2"));
}

TEST_CASE("evaluate: train --do_eval finds the same loss", "[e2e][evaluate]") {
  const test::TempDir folder;
  const auto [model, data] = GENERATE(table<std::string, Words>(
      {{"byte_model", {"--validation_file", "records.jsonl", "--block_size", "32"}},
       {"byte_model", {"--validation_file", "README.md"}},
       {"model", {"--validation_file", "tokens.bin", "--block_size", "16"}},
       {"pairs/t5", {"--validation_file", "pairs/pairs.jsonl"}}}));
  CAPTURE(model, data);
  const fs::path output = folder.path() / "out";
  const test::TrainRun run = test::run_train(
      1, nullptr, output, joined({"--model_name_or_path", model, "--do_eval"}, data));
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  const json trains = test::read_json(output / "eval_results.json");
  const json result = evaluate(model, data);
  CHECK(result.at("eval_loss") == trains.at("eval_loss"));
  CHECK(result.at("samples") == trains.at("eval_samples"));
}

TEST_CASE("evaluate: bits per byte divide by the bytes of the counted tokens", "[e2e][evaluate]") {
  const auto bits = [](const json& result) {
    return result.at("eval_loss").get<double>() / std::log(2.0);
  };
  SECTION("of bytes") {
    const json result =
        evaluate("byte_model", {"--validation_file", "records.jsonl", "--block_size", "32"});
    CHECK(is_near(result.at("bits_per_byte"), bits(result)));
  }
  SECTION("of token files without a tokenizer nobody knows them") {
    const json result = evaluate("model", {"--validation_file", "tokens.bin"});
    CHECK(result.at("bits_per_byte").is_null());
  }
  SECTION("of token files the model's tokenizer knows them, or the one that is given") {
    const test::TempDir folder;
    const Words data{"--validation_file", "tokens.bin"};
    CHECK(evaluate("choices/gpt2", data).at("bits_per_byte").is_null());
    const json given = evaluate("choices/gpt2", joined(data, {"--tokenizer", "tokenizers/gpt2"}));
    CHECK(given.at("bits_per_byte") > 1);
    for (const char* const part : {"choices/gpt2", "tokenizers/gpt2"}) {
      fs::copy(test::golden_folder / part, folder.path(),
               fs::copy_options::recursive | fs::copy_options::skip_existing);
    }
    CHECK(evaluate(folder.path(), data).at("bits_per_byte") == given.at("bits_per_byte"));
  }
  SECTION("special tokens count none") {
    // Each text ends with an end-of-text token, whose loss counts.
    const test::TempDir folder;
    const std::string file = write_lines(folder.path() / "t.jsonl",
                                         {R"({"text": "the agent"})", R"({"text": "each rank"})"});
    const json result = evaluate("choices/gpt2", {"--tokenizer", "tokenizers/gpt2", "--packing",
                                                  "false", "--validation_file", file});
    const double total = bits(result) * result.at("tokens").get<double>();
    const double bytes = total / result.at("bits_per_byte").get<double>();
    CHECK(std::abs(bytes - std::round(bytes)) < 1e-6);
    CHECK(std::round(bytes) < 18);  // the first token of each is no label
  }
}

TEST_CASE("evaluate: weights that are stored in 16 bits are computed with in 16 bits",
          "[e2e][evaluate]") {
  const test::TempDir folder;
  const fs::path model = folder.path() / "model";
  const test::TrainRun trained =
      test::run_train(1, nullptr, model,
                      {"--model_name_or_path", "byte_model", "--bf16", "--train_file",
                       "records.jsonl", "--block_size", "32", "--max_steps", "1"});
  CAPTURE(trained.err);
  REQUIRE(trained.status == 0);
  struct Row {
    Words option;
    std::string dtype;
  };
  const Row row =
      GENERATE(values<Row>({{{}, "bf16"}, {{"--bf16", "false"}, "fp32"}, {{"--fp16"}, "fp16"}}));
  const Words data{"--validation_file", "records.jsonl", "--block_size", "32"};
  const Evaluation run({}, model.string(), joined(data, row.option));
  run.require_done();
  CHECK_THAT(run.err, ContainsSubstring(row.dtype + ", 1 rank"));
}

TEST_CASE("evaluate: a checkpoint has the loss of its model", "[e2e][evaluate]") {
  const test::TempDir folder;
  const fs::path model = folder.path() / "model";
  const Words data{"--validation_file", "records.jsonl", "--block_size", "32"};
  const test::TrainRun trained =
      test::run_train(2, {{"train_batch_size", 8}, {"zero_optimization", {{"stage", 2}}}}, model,
                      joined({"--model_name_or_path", "byte_model", "--train_file", "records.jsonl",
                              "--max_steps", "1", "--save_steps", "1"},
                             data));
  CAPTURE(trained.err);
  REQUIRE(trained.status == 0);
  const json result = evaluate(model / "checkpoint-1", data);
  CHECK(result.at("eval_loss") == evaluate(model, data).at("eval_loss"));
  CHECK(is_near(result.at("eval_loss"), trained.metrics.back().at("eval_loss")));
}

TEST_CASE("evaluate: choices are answered as transformers does", "[e2e][evaluate][golden]") {
  const Choices golden(GENERATE("gpt2", "llama", "t5"));
  const bool per_byte = GENERATE(false, true);
  const int count = GENERATE(1, 2);
  CAPTURE(golden.model, per_byte, count);
  const test::TempDir folder;
  const auto likeliest = golden.best(false);
  const auto normalized = golden.best(true);
  double equal = 0;
  for (std::size_t i = 0; i < likeliest.size(); ++i) equal += likeliest[i] == normalized[i] ? 1 : 0;
  equal /= static_cast<double>(likeliest.size());
  const std::string file =
      golden.write(folder.path() / "q.jsonl", per_byte ? normalized : likeliest);
  json sharding{{"stage", count == 1 ? 0 : 3}};
  const std::string config = write_config(folder.path(), {{"zero_optimization", sharding}});
  const json result = Evaluation(ranks(count), golden.model,
                                 {"--tokenizer", golden.tokenizer, "--validation_file", file,
                                  "--deepspeed", config})
                          .result();
  CHECK(result.at("acc") == (per_byte ? equal : 1.0));
  CHECK(result.at("acc_norm") == (per_byte ? 1.0 : equal));
  CHECK(result.at("samples") == likeliest.size());
  CHECK(result.size() == 5);
}

TEST_CASE("evaluate: an output file holds the result and stdout nothing", "[e2e][evaluate]") {
  const test::TempDir folder;
  const fs::path file = folder.path() / "result.json";
  const Evaluation run(ranks(2), "model",
                       {"--validation_file", "tokens.bin", "--output_file", file.string()});
  CAPTURE(run.err);
  REQUIRE(run.status == 0);
  CHECK(run.out.empty());
  CHECK(test::read_json(file).at("tokens") > 0);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("evaluate: mistakes are found before ranks start", "[e2e][evaluate]") {
  const test::TempDir folder;
  const auto write = [&](const char* name, const std::vector<std::string>& lines) {
    return write_lines(folder.path() / name, lines);
  };
  const std::string question = R"({"query": "a", "choices": [" b", " c"], "gold": 1})";
  const std::string asks = write("q.jsonl", {question});
  struct Row {
    Words arguments;
    std::string message;
  };
  const Words tokens{"--validation_file", "tokens.bin"};
  const std::vector<Row> rows{
      {{}, "--validation_file is required"},
      {{"--validation_file", "none.txt"}, "--validation_file none.txt: no such file"},
      {{"--validation_file", write("empty.txt", {})}, "empty"},
      {{"--validation_file",
        write("gold.jsonl", {question, R"({"query": "a", "choices": ["b", "c"], "gold": 2})"})},
       "gold.jsonl:2: gold is 2; it must be the index of a choice, from 0 to 1"},
      {{"--validation_file", write("one.jsonl", {R"({"query": "a", "choices": ["b"]})"})},
       "one.jsonl:1: choices must be a list of at least two texts"},
      {{"--validation_file", write("void.jsonl", {R"({"query": "a", "choices": ["b", ""]})"})},
       "void.jsonl:1: choices[1] is empty, not a text"},
      {{"--validation_file",
        write("start.jsonl", {R"({"query": "", "choices": ["b", "c"], "gold": 0})"})},
       "start.jsonl:1: choices[0]: its query is empty, and the tokenizer has no token"},
      {{"--validation_file",
        write("long.jsonl", {fmt::format(R"({{"query": "a", "choices": ["{}", "b"], "gold": 0}})",
                                         std::string(40, 'x'))})},
       "long.jsonl:1: choices[0]: has 40 tokens; the longest sequence has 32"},
      {{"--validation_file", asks, "--tokenizer", "tokenizers/llama2"},
       "is not below the model's vocabulary of 256"},
      {{"--validation_file", asks, "--packing", "false"}, "--packing: is not for questions"},
      {{"--validation_file", "README.md", "--tokenizer", "tokenizers/llama2"}, "README.md: token"},
      {joined(tokens, {"--block_size", "33"}), "is longer than the model's 32 positions"},
      {joined(tokens, {"--output_file", "none/result.json"}),
       "--output_file none/result.json: there is no such directory"},
      {joined(tokens, {"--adapter_name_or_path", "a"}), "adapters are not implemented"},
      {joined(tokens, {"--quantization", "nf4"}), "--quantization nf4: not implemented"},
      {joined(tokens, {"--blok_size", "8"}),
       "unknown option --blok_size; did you mean --block_size"},
      {joined(tokens, {"--learning_rate", "8"}), "--learning_rate; it is an option of train"},
      {joined(tokens, {"--tasks", "arc"}), "give questions as --validation_file"},
      {joined(tokens, {"--deepspeed", "none.json"}), "--deepspeed none.json: no such file"},
      {joined(tokens, {"--num_gpus", "2"}), "--num_gpus is a launch option"}};
  for (const Row& row : rows) {
    CAPTURE(row.arguments);
    const Evaluation run({}, "byte_model", row.arguments);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, ContainsSubstring(row.message) && !ContainsSubstring("rank 0"));
  }
  CHECK_THAT(Evaluation({}, "none", tokens).err, ContainsSubstring("none: no such directory"));
  CHECK_THAT(Evaluation({}, "model", {"--validation_file", asks}).err,
             ContainsSubstring("add --tokenizer byte to read the bytes of the text"));
}
