// What runs do with the models that they are given, and what they say of those that they refuse.
#include <cstring>
#include <fstream>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "tests/e2e/resumable_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using test::run_train;
using test::TrainRun;

namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using test::Outcome;
using test::run_command;

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

const Words on_tokens{
    "--train_file", "tokens.bin", "--block_size", "32", "--per_device_train_batch_size", "2"};

const std::map<std::string, std::string> companions{
    {"generation_config.json", "{\"eos_token_id\": [7, 9], \"do_sample\": true}"},
    {"tokenizer.json", std::string("\0not read\xff", 10)},
    {"tokenizer_config.json", "{}"},
    {"special_tokens_map.json", "{}\n\n"},
    {"vocab.json", "{\"a\": 0}"},
    {"merges.txt", "#version: 0.2\na b"}};

/// The golden model as another program may have left it.
fs::path write_given_model(const fs::path& folder) {
  const fs::path model = folder / "given";
  fs::copy(test::golden_folder / "model", model);
  json config = test::read_json(model / "config.json");
  config.update({{"eos_token_id", {7, 9}},
                 {"bos_token_id", {1, 2}},
                 {"pad_token_id", 0},
                 {"n_ctx", 16},
                 {"torch_dtype", "float32"},
                 {"task_specific_params", {{"text-generation", {{"max_length", 50}}}}},
                 {"own_key", {1, nullptr, 2.5}}});
  write_bytes(model / "config.json", config.dump());
  for (const auto& [name, bytes] : companions) write_bytes(model / name, bytes);
  write_bytes(model / "README.md", "is not the model's");
  return model;
}

void check_travelled(const fs::path& directory, const fs::path& model, const char* dtype) {
  CAPTURE(directory);
  json expected = test::read_json(model / "config.json");
  expected["torch_dtype"] = dtype;
  CHECK(test::read_json(directory / "config.json") == expected);
  for (const auto& [name, bytes] : companions) {
    CAPTURE(name);
    CHECK((test::read_bytes(directory / name) == bytes));
  }
  CHECK_FALSE(fs::exists(directory / "README.md"));
}

/// A model of 300 tokens that a run on a token file has left.
fs::path train_on_tokens(const fs::path& folder) {
  const fs::path output = folder / "tokens";
  const Words sizes{"--config_name", "gpt2", "--config_overrides",
                    "n_layer=1,n_embd=16,n_head=2,vocab_size=300,n_positions=32"};
  REQUIRE(run_train(1, {}, output, joined(joined(sizes, on_tokens), {"--max_steps", "1"})).status ==
          0);
  return output;
}

/// Puts `value` into an element of a tensor.
void spoil(const fs::path& file,
           std::size_t element,
           float value,
           const std::string& tensor = "wpe.weight") {
  std::string bytes = test::read_bytes(file);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  const json header = json::parse(bytes.substr(sizeof header_bytes, header_bytes));
  const std::string name = header.contains(tensor) ? tensor : "transformer." + tensor;
  const auto begin = header.at(name).at("data_offsets").at(0).get<std::size_t>();
  std::memcpy(bytes.data() + sizeof header_bytes + header_bytes + begin + element * sizeof value,
              &value, sizeof value);
  write_bytes(file, bytes);
}

}  // namespace

TEST_CASE("Model: companion files and configuration keys are kept", "[e2e][model]") {
  const bool bf16 = GENERATE(false, true);
  const char* const dtype = bf16 ? "bfloat16" : "float32";
  const test::TempDir folder;
  const fs::path model = write_given_model(folder.path());
  const fs::path output = folder.path() / "out";
  const json config{
      {"bf16", {{"enabled", bf16}}},
      {"zero_optimization", {{"stage", 3}, {"stage3_gather_16bit_weights_on_model_save", bf16}}}};
  const auto train = [&](const fs::path& from, const fs::path& to, const Words& more) {
    const TrainRun run = run_train(
        2, config, to, joined(joined(on_tokens, {"--model_name_or_path", from.string()}), more));
    CAPTURE(run.err);
    REQUIRE(run.status == 0);
  };
  train(model, output, {"--max_steps", "2", "--save_steps", "1"});
  check_travelled(output, model, dtype);
  check_travelled(output / "checkpoint-1", model, dtype);
  train(model, output,
        {"--max_steps", "3", "--save_steps", "1", "--resume_from_checkpoint", "latest"});
  check_travelled(output / "checkpoint-3", model, dtype);
  CHECK(run_command({"checkpoint", "verify", output.string()}).status == 0);

  const std::string exported = folder.path() / "exported";
  CHECK(run_command({"checkpoint", "export", output.string(), exported}).status == 0);
  check_travelled(exported, model, "float32");
  train(output / "checkpoint-3", folder.path() / "next", {"--max_steps", "1"});
  check_travelled(folder.path() / "next", model, dtype);
}

TEST_CASE("Model: text under a vocabulary of other tokens is refused", "[e2e][model]") {
  const test::TempDir folder;
  const fs::path model = train_on_tokens(folder.path());
  const std::string text = folder.path() / "text.txt";
  for (int i = 0; i < 100; ++i) std::ofstream(text, std::ios::app) << "the cat sat on my mat. ";
  const auto train_on = [&](const std::string& file, const std::string& name, const Words& words) {
    return run_train(1, {}, folder.path() / name,
                     joined({"--train_file", file, "--max_steps", "1",
                             "--per_device_train_batch_size", "2", "--block_size", "32"},
                            words));
  };
  const auto train = [&](const std::string& name, const Words& words) {
    return train_on(text, name, words);
  };
  const TrainRun refused = train("refused", {"--model_name_or_path", model.string()});
  CAPTURE(refused.err);
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, ContainsSubstring(text + ": is text, and the model in " + model.string() +
                                            " has a vocabulary of 300, not of 256 bytes") &&
                              ContainsSubstring("add --tokenizer byte") &&
                              !ContainsSubstring("rank "));
  const TrainRun held_out = train_on(
      "tokens.bin", "refused", {"--model_name_or_path", model.string(), "--validation_file", text});
  CHECK(held_out.status == 2);
  CHECK_THAT(held_out.err, ContainsSubstring(text + ": is text, and the model in"));
  const std::string chats = folder.path() / "chats.jsonl";
  write_bytes(chats, R"({"messages": [{"role": "user", "content": "a"}]})");
  const TrainRun chat = train_on(chats, "refused", {"--model_name_or_path", model.string()});
  CHECK(chat.status == 2);
  CHECK_THAT(chat.err,
             ContainsSubstring(chats + ":1: a conversation: the model in " + model.string() +
                               " has no tokenizer beside it, and so no chat template: "
                               "add --tokenizer DIR"));

  const TrainRun typed =
      train("typed", {"--model_name_or_path", model.string(), "--tokenizer", "byte"});
  REQUIRE(typed.status == 0);
  CHECK(test::read_json(folder.path() / "typed/config.json")["dstrain_tokenizer"] == "byte");
  // A model of bytes is known again, and has no other tokenizer.
  const std::string of_bytes = folder.path() / "typed";
  CHECK(train("again", {"--model_name_or_path", of_bytes}).status == 0);
  CHECK_THAT(train_on(chats, "chat", {"--model_name_or_path", of_bytes}).err,
             ContainsSubstring("the byte tokenizer has no chat template"));
  const Words generate{"generate",         "--prompt", "the",
                       "--max_new_tokens", "1",        "--model_name_or_path"};
  CHECK_THAT(run_command(joined(generate, {model.string()})).err,
             ContainsSubstring("written as bytes"));
  CHECK_THAT(run_command(joined(generate, {of_bytes})).err, !ContainsSubstring("written as bytes"));
}

TEST_CASE("Model: with random weights a message says that tokens are bytes", "[e2e][model]") {
  const test::TempDir folder;
  const std::string text = folder.path() / "text.txt";
  for (int i = 0; i < 100; ++i) std::ofstream(text, std::ios::app) << "the cat sat on my mat. ";
  const auto train = [&](int vocabulary, const Words& more) {
    const std::string sizes =
        fmt::format("n_layer=1,n_embd=16,n_head=2,n_positions=32,vocab_size={}", vocabulary);
    const TrainRun run =
        run_train(2, {}, folder.path() / "out",
                  joined({"--config_name", "gpt2", "--config_overrides", sizes, "--train_file",
                          text, "--max_steps", "1", "--per_device_train_batch_size", "2"},
                         more));
    CHECK(run.status == 0);
    return run.err;
  };
  const std::string told = "each byte of the text is a token";
  const std::string err = train(300, {});
  CHECK_THAT(err, ContainsSubstring(told));
  CHECK(err.find(told) == err.rfind(told));
  CHECK_THAT(train(300, {"--tokenizer", "byte"}), ContainsSubstring(told));
  CHECK_THAT(train(256, {}), !ContainsSubstring(told));
  CHECK_FALSE(test::read_json(folder.path() / "out/config.json").contains("dstrain_tokenizer"));
}

TEST_CASE("Model: weights that are not finite are named before the first step", "[e2e][model]") {
  const float bad =
      GENERATE(std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity());
  const test::TempDir folder;
  const fs::path model = write_given_model(folder.path());
  spoil(model / "model.safetensors", 20 * 48 + 5, bad);
  const fs::path output = folder.path() / "out";
  const TrainRun run =
      run_train(2, {{"zero_optimization", {{"stage", 3}}}}, output,
                joined(on_tokens, {"--model_name_or_path", model.string(), "--max_steps", "2"}));
  const Outcome said = run_command({"generate", "--prompt", "a", "--max_new_tokens", "1",
                                    "--model_name_or_path", model.string()});
  CAPTURE(run.err);
  CHECK(run.status == 2);
  CHECK_THAT(run.err, ContainsSubstring((model / "model.safetensors").string() + ": tensor '") &&
                          ContainsSubstring(fmt::format("wpe.weight' holds {} at [20, 5]", bad)) &&
                          !ContainsSubstring("learning rate"));
  CHECK(run.metrics.empty());
  CHECK(said.status == 2);
}

TEST_CASE("Model: logits that are not finite are an error instead of a token", "[e2e][model]") {
  const test::TempDir folder;
  const fs::path model = write_given_model(folder.path());
  for (std::size_t i = 0; i < 48; ++i) {  // finite, and too large to compute with
    spoil(model / "model.safetensors", i, 3e38F, "ln_f.weight");
  }
  const Outcome said = run_command({"generate", "--prompt", "a", "--max_new_tokens", "1",
                                    "--tokenizer", "byte", "--model_name_or_path", model.string()});
  CHECK(said.status == 1);
  CHECK(said.out.empty());
  CHECK_THAT(said.err, ContainsSubstring("the logits of new token 1 hold") &&
                           ContainsSubstring("not finite"));
}

TEST_CASE("Model: files of other programs are named with the remedy", "[e2e][model]") {
  const test::TempDir folder;
  const fs::path deepspeed = folder.path() / "deepspeed";
  fs::create_directories(deepspeed / "global_step4");
  write_bytes(deepspeed / "latest", "global_step4");
  write_bytes(deepspeed / "global_step4/mp_rank_00_model_states.pt", "\x80\x02");
  write_bytes(deepspeed / "global_step4/zero_pp_rank_0_mp_rank_00_optim_states.pt", "\x80\x02");
  const fs::path pickled = folder.path() / "pickled";
  fs::create_directories(pickled);
  write_bytes(pickled / "config.json", "{\"model_type\": \"gpt2\"}");
  write_bytes(pickled / "pytorch_model.bin", "\x80\x02");
  write_bytes(pickled / "tokenizer.json", "{}");
  const fs::path trainer = folder.path() / "checkpoint-500";
  fs::copy(test::golden_folder / "model", trainer);
  write_bytes(trainer / "optimizer.pt", "\x80\x02");

  const Words train{"train",
                    "--output_dir",
                    (folder.path() / "out").string(),
                    "--train_file",
                    (test::golden_folder / "tokens.bin").string(),
                    "--block_size",
                    "32"};
  const Words resume = joined(train, {"--config_name", "gpt2", "--resume_from_checkpoint"});
  const Words start = joined(train, {"--model_name_or_path"});
  const Words generate{"generate", "--prompt", "a", "--model_name_or_path"};
  const Words list{"checkpoint", "list"};
  const auto check = [&](const Words& command, const std::string& path, const Words& messages,
                         const Words& rest = {}) {
    const Outcome outcome = run_command(joined(joined(command, {path}), rest));
    CAPTURE(path, outcome.err, command.front());
    CHECK(outcome.status == 2);
    for (const std::string& message : messages) CHECK_THAT(outcome.err, ContainsSubstring(message));
    CHECK_THAT(outcome.err, !ContainsSubstring("rank "));
  };
  const std::string output = folder.path() / "hf";
  for (const Words& command : {start, resume, generate, list}) {
    check(command, deepspeed,
          {"is a checkpoint of DeepSpeed in pickled files", "can run code",
           "load_state_dict_from_zero_checkpoint"});
    check(command, pickled,
          {"pickled weights are never read",
           "T.from_pretrained(a).save_pretrained(b)\" " + pickled.string()});
    for (const std::string name : {"gpt2", "t5-small", "google-t5/t5-small"}) {
      const bool names_model = command == start || command == generate;
      const std::string hint = names_model ? "; a model of the Hugging Face hub" : "\n";
      check(command, name, {name + ": no such directory" + hint});
    }
  }
  check(resume, trainer,
        {"Hugging Face's Trainer", "give --model_name_or_path " + trainer.string()});
  check({"checkpoint", "export"}, trainer,
        {"Hugging Face's Trainer", "give dstrain train --model_name_or_path " + trainer.string()},
        {output});
  check({"zero_to_fp32"}, deepspeed, {"is a checkpoint of DeepSpeed"}, {output});
  check({"checkpoint", "export"}, "t5-small", {"t5-small: no such directory\n"}, {output});
  check({"checkpoint", "prune", "--keep", "1"}, deepspeed, {"is a checkpoint of DeepSpeed"});
  check({"checkpoint", "verify"}, deepspeed / "global_step4", {"is a checkpoint of DeepSpeed"});
  test::Launch inside({"zero_to_fp32", ".", "out"},
                      {.env = {}, .directory = (deepspeed / "global_step4").string()});
  CHECK(inside.wait() == 2);
  CHECK_THAT(inside.err(), ContainsSubstring("deepspeed-safetensors; its optimizer states"));
}

TEST_CASE("Model: a directory takes precedence over a preset of its name", "[e2e][model]") {
  const test::TempDir folder;
  fs::copy(test::golden_folder / "model", folder.path() / "gpt2");
  test::Launch generate({"generate", "--model_name_or_path", "gpt2", "--tokenizer", "byte",
                         "--prompt", "a", "--max_new_tokens", "2", "--stream"},
                        {.env = {}, .directory = folder.path().string()});
  CHECK(generate.wait() == 0);
  CAPTURE(generate.err());
  CHECK(generate.out().ends_with('\n'));
}
