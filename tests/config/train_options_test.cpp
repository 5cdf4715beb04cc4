#include "runtime/config/train_options.h"

#include <algorithm>
#include <fstream>

#include "runtime/config/ds_config.h"
#include "runtime/config/native_types.h"
#include "runtime/config/schema.h"
#include "runtime/config/train_flags.h"
#include "tests/config/resolved.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain::config;
using Catch::Matchers::ContainsSubstring;
using dstrain::test::Arguments;
using dstrain::test::contains;
using dstrain::test::message_of;
using dstrain::test::options_error;
using dstrain::test::TempDir;

namespace {

void touch(const std::filesystem::path& path) {
  std::ofstream(path) << "x";
}

}  // namespace

TEST_CASE("TrainOptions: values and spellings", "[config][options]") {
  const TrainOptions options = read_train_flags(Arguments{"--train-file",
                                                          "a-b_c.txt",
                                                          "--learning_rate=1e-3",
                                                          "--no_shuffle",
                                                          "--max-steps",
                                                          "-1",
                                                          "--overwrite_output_dir",
                                                          "True",
                                                          "--gradient_checkpointing",
                                                          "0",
                                                          "--output_dir",
                                                          "o",
                                                          "--lr",
                                                          "1e-3",
                                                          "--block_size",
                                                          "1e3",
                                                          "--report_to",
                                                          "none",
                                                          "--bf16",
                                                          "false",
                                                          "--tf32",
                                                          "0"});
  CHECK(options.train_file.value == std::vector<DataFile>{{"a-b_c.txt"}});
  CHECK(options.learning_rate.value == 1e-3);
  CHECK(options.packing.value);
  CHECK(options.no_shuffle.value);
  CHECK(options.max_steps.value == -1);
  CHECK(options.overwrite_output_dir.value);
  CHECK_FALSE(options.gradient_checkpointing.value);
  CHECK(options.gradient_checkpointing.typed());
  CHECK(options.block_size.value == 1000);
  CHECK_FALSE(options.seed.typed());
}

TEST_CASE("TrainOptions: the length of a sample under other programs' names", "[config][options]") {
  const std::string name =
      GENERATE("--block_size", "--seq-length", "--max_length", "--max_seq_length", "--max_seq_len",
               "--model_max_length", "--cutoff_len");
  CHECK(read_train_flags(Arguments{name, "512"}).block_size.value == 512);
}

TEST_CASE("TrainOptions: numbers may have Python's separators", "[config][options]") {
  const TrainOptions options =
      read_train_flags(Arguments{"--save_steps", "20_000", "--max_steps", "1_000_000"});
  CHECK(options.save_steps.value == 20'000);
  CHECK(options.max_steps.value == 1'000'000);
}

TEST_CASE("TrainOptions: a number after an unknown option counts as its value",
          "[config][options]") {
  CHECK(options_error({"--reward_mixing", "-1", "--max_steps", "2"}) ==
        "--reward_mixing: unknown option; see dstrain train --help");
}

TEST_CASE("TrainOptions: a boolean needs no value before another option", "[config][options]") {
  const TrainOptions options =
      read_train_flags(Arguments{"--no_shuffle", "--gradient_checkpointing", "--max_steps", "3"});
  CHECK(options.no_shuffle.value);
  CHECK(options.gradient_checkpointing.value);
  CHECK(options.max_steps.value == 3);
}

TEST_CASE("TrainOptions: any setting of TRL's loss options says what is learned",
          "[config][options]") {
  for (const char* value : {"true", "false"}) {
    const TrainOptions options = read_train_flags(Arguments{"--assistant_only_loss", value});
    REQUIRE(options.warnings.size() == 1);
    CHECK_THAT(options.warnings.front(), ContainsSubstring("of plain text, every token"));
  }
}

TEST_CASE("TrainOptions: the optimizers that a refusal names are built", "[config][options]") {
  const std::string told = options_error({"--optim", "muon"});
  for (const NativeType& type : optimizer_types()) {
    CAPTURE(type.name);
    const bool adam = type.name.starts_with("Adam");
    CHECK(contains(told, std::string(type.name)) == (type.built && !adam));
  }
}

TEST_CASE("TrainOptions: the last of a repeated option counts", "[config][options]") {
  CHECK(read_train_flags(Arguments{"--max_steps", "3", "--max-steps", "4"}).max_steps.value == 4);
  CHECK(options_error({"--batch-size", "1", "--micro-batch-size", "2"}) ==
        "--batch_size 1 and --micro_batch_size 2 are the same option; keep one");
  CHECK(options_error({"--batch_size", "128", "--micro_batch_size", "4"}) ==
        "--batch_size 128 and --micro_batch_size 4 are the same option; where the first is that of "
        "all ranks, write --global_batch_size 128 --micro_batch_size 4");
}

TEST_CASE("TrainOptions: the configuration file", "[config][options]") {
  const auto file = [](const Arguments& arguments) {
    return ds_config_file(read_train_flags(arguments));
  };
  CHECK(file({}).empty());
  CHECK(file({"--deepspeed", "a.json"}) == "a.json");
  CHECK(file({"--deepspeed=a.json"}) == "a.json");
  CHECK(file({"--deepspeed", "--deepspeed_config", "b.json"}) == "b.json");
  CHECK(file({"--deepspeed_config", "b.json"}) == "b.json");
  CHECK(file({"--deepspeed_config", "b.json", "--deepspeed"}) == "b.json");
}

TEST_CASE("TrainOptions: each problem gives one line", "[config][options]") {
  struct Row {
    Arguments arguments;
    std::string message;
  };
  const Row row = GENERATE(values<Row>({
      {{"--learning-rat", "1"}, "--learning_rat: unknown option; did you mean --learning_rate?"},
      {{"--batch-sizes=1"}, "--batch_sizes: unknown option; did you mean --batch_size?"},
      {{"--quux"}, "--quux: unknown option; see dstrain train --help"},
      {{"--dataset_names", "x"},
       "--dataset_names: unknown option; did you mean --dataset_name (data sets are not "
       "downloaded; give --train_file FILE)?"},
      {{"--max_grad_norm", "Infinity"},
       "--max_grad_norm: expected a number, got \"Infinity\"; 0 never clips"},
      {{"--test_size", "0.1"},
       "--test_size 0.1: give --validation_file FILE, or --split 90,10,0; leave it out or set it "
       "to "
       "0"},
      {{"--use_dora"},
       "--use_dora: LoRA is not implemented; all parameters are trained; leave it out or set it to "
       "false"},
      {{"--max_eval_steps", "5"},
       "--max_eval_steps 5: use --max_eval_samples 40, 5 batches of 8 samples on one rank; leave "
       "it "
       "out or set it to -1"},
      {{"--per_device_eval_batch_size", "2", "--max_eval_steps", "5"},
       "--max_eval_steps 5: use --max_eval_samples 10, 5 batches of 2 samples on one rank; leave "
       "it "
       "out or set it to -1"},
      {{"--dropout", "0.1"}, "--dropout 0.1: use --attention_dropout 0.1 --hidden_dropout 0.1"},
      {{"--ds_config", "f.json"}, "--ds_config f.json: use --deepspeed FILE"},
      {{"--dataset_shuffling", "x"},
       "--dataset_shuffling: unknown option; see dstrain train --help"},
      {{"-b", "8"}, "-b: unknown option; did you mean --per_device_train_batch_size?"},
      {{"-e", "3"}, "-e: unknown option; did you mean --num_train_epochs?"},
      {{"--ctx_len", "512", "--grad-clip", "1"},
       "--ctx_len: unknown option; did you mean --block_size?\n"
       "--grad_clip: unknown option; did you mean --max_grad_norm?"},
      {{"--sequence-len", "2048"}, "--sequence_len: unknown option; did you mean --block_size?"},
      {{"--disable_bf16"}, "--disable_bf16: unknown option; did you mean --bf16 false?"},
      {{"--no_gradient_checkpointing"},
       "--no_gradient_checkpointing: unknown option; did you mean --gradient_checkpointing false?"},
      {{"--eval_block_size", "8"}, "--eval_block_size: unknown option; see dstrain train --help"},
      {{"--eval_file", "v"}, "--eval_file: unknown option; did you mean --validation_file?"},
      {{"--dev_data_path", "v"},
       "--dev_data_path: unknown option; did you mean --validation_file?"},
      {{"--lr_decay_style", "WSD"},
       "--lr_decay_style WSD: not implemented; leave it out or set it to constant or linear or "
       "cosine or inverse-square-root"},
      {{"--lr_decay_style", "inverse-square-root"},
       "--lr_decay_style inverse-square-root: needs --warmup_steps N, of which its rates are "
       "parts"},
      {{"--lr_decay_style", "cosine", "--lr_scheduler_type", "linear"},
       "--lr_scheduler_type linear and --lr_decay_style cosine are two schedules; keep one"},
      {{"--resume_from_checkpoint"}, "--resume_from_checkpoint: needs a value: DIR or latest"},
      {{"--resume_from_checkpoint", "--max_steps", "5"},
       "--resume_from_checkpoint: needs a value: DIR or latest"},
      {{"--model", "x"}, "--model x: use --model_name_or_path DIR"},
      {{"--mixed_precision", "bf16"},
       "--mixed_precision bf16: use --bf16 or --fp16; leave it out or set it to no"},
      {{"--train_batch_size", "8"},
       "--train_batch_size 8: use --per_device_train_batch_size N, of each rank, or "
       "--global_batch_size N, of all ranks"},
      {{"-x"}, "-x: unknown option; see dstrain train --help"},
      {{"stray"}, "stray: an argument without an option"},
      {{"--lr", "fast"}, "--lr: expected a number, got \"fast\""},
      {{"--lr", "1e-3x"}, "--lr: expected a number, got \"1e-3x\""},
      {{"--lr", "nan"}, "--lr: expected a number, got \"nan\""},
      {{"--lr", "-1"}, "--lr: must be at least 0, got -1"},
      {{"--adam_beta1", "1"}, "--adam_beta1: must be between 0 and 1, got 1"},
      {{"--max_steps", "1.5"}, "--max_steps: expected a whole number, got 1.5"},
      {{"--seed", "1e300"}, "--seed: expected a whole number, got 1e300"},
      {{"--per_device_train_batch_size", "0"},
       "--per_device_train_batch_size: must be at least 1, got 0"},
      {{"--no_shuffle=maybe"}, "--no_shuffle: expected true or false, got \"maybe\""},
      {{"--bf16", "fp32"}, "--bf16: expected true or false, got \"fp32\""},
      {{"--fp16_opt_level", "O0"},
       "--fp16_opt_level: must be O1 or O2 or O3 or 01 or 02 or 03, got \"O0\""},
      {{"--fp16_backend", "apx"},
       "--fp16_backend: must be auto or amp or apex, got \"apx\"; did you mean apex?"},
      {{"--eval_strategy", "setps"},
       "--eval_strategy: must be no or steps or epoch, got \"setps\"; did you mean steps?"},
      {{"--eval_steps", "2.5"},
       "--eval_steps: must be a whole number, or below 1 a fraction of all steps, got 2.5"},
      {{"--no_save_safetensors"},
       "--no_save_safetensors: pickle is not written; leave it out or set it to true"},
      {{"--tf32", "1", "--no_tf32"},
       "--tf32 and --no_tf32 are the "
       "same "
       "option; keep one"},
      {{"--dataset_config", "ro-en"},
       "--dataset_config ro-en: data sets are not downloaded; give --train_file FILE"},
      {{"--optim", "adafactor"},
       "--optim adafactor: not implemented; leave it out or set it to adamw_torch or "
       "adamw_torch_fused or adamw_hf or adamw_apex_fused or adamw; Lamb and Lion are an "
       "optimizer.type of --deepspeed's file"},
      {{"--metric_for_best_model", "accuracy"},
       "--metric_for_best_model accuracy: not implemented; leave it out or set it to loss or "
       "eval_loss"},
      {{"--save", "a", "--output_dir", "b"},
       "--output_dir b and --save a are the same option; keep one"},
      {{"--logging_steps", "0"},
       "--logging_steps: must not be 0; --logging_strategy no logs only the first and the last "
       "step"},
      {{"--do_train", "false"}, "--do_train false without --do_eval: there is nothing to do"},
      {{"--split", "0,0,0"},
       "--split 0,0,0: expected up to three weights, \"949,50,1\", that are not all 0"},
      {{"--split", "1e308,1e308"},
       "--split 1e308,1e308: expected up to three weights, \"949,50,1\", that are not all 0"},
      {{"--save_steps", "-2"}, "--save_steps: must be at least 0, got -2"},
      {{"--eval_steps", "-1"},
       "--eval_steps: must be at least 0, got -1; once an epoch is --eval_strategy epoch"},
      {{"--checkpointing_steps", "epoch"},
       "--checkpointing_steps epoch: use --save_strategy epoch"},
      {{"--precision", "bf16", "--bf16", "false"},
       "--precision bf16 and --bf16 false contradict each other; keep one"},
      {{"--precision", "fp16", "--bf16", "true"},
       "--precision fp16 and --bf16 true contradict each other; keep one"},
      {{"--precision", "16"},
       "--precision: must be bf16 or fp16 or fp32 or bf16-mixed or 16-mixed or 32-true, got "
       "\"16\""},
      {{"--save_total_limit", "x"}, "--save_total_limit: expected a whole number, got \"x\""},
      {{"--report_to", "tensorboard,csv"},
       "--report_to tensorboard,csv: not implemented; leave it out or set it to none"},
      {{"--lr_scheduler_type", "greedy"},
       "--lr_scheduler_type greedy: not implemented; leave it out or set it to constant or "
       "constant_with_warmup or linear or cosine or polynomial or inverse_sqrt; a cosine that ends "
       "above 0 is the scheduler.type WarmupCosineLR of --deepspeed's file, with cos_min_ratio"},
      {{"--vocab_file", "vocab.json"},
       "--vocab_file vocab.json: give --tokenizer DIR, a directory with the tokenizer's files"},
      {{"--model-parallel-size", "2"},
       "--model_parallel_size 2: ZeRO is the only parallelism; leave it out or set it to 1"},
  }));
  CAPTURE(row.arguments);
  CHECK(options_error(row.arguments) == row.message);
}

TEST_CASE("TrainOptions: every numeric option refuses other text", "[config][options]") {
  const std::string word =
      GENERATE(" 5", "5 ", "5x", "5_", "_5", "5__0", "0x5", "+5", "nan", "inf", "-inf", "1e999");
  int numbers = 0;
  for (const FlagRow& row : implemented_flags()) {
    const bool whole = std::holds_alternative<Flag<std::int64_t> TrainOptions::*>(row.target);
    if (!whole && !std::holds_alternative<Flag<double> TrainOptions::*>(row.target)) continue;
    ++numbers;
    const std::string option = fmt::format("--{}", row.name);
    const bool clips = row.name == "max_grad_norm" && word == "inf";
    const std::string told =
        fmt::format("{}: expected {}, got \"{}\"{}", option, whole ? "a whole number" : "a number",
                    word, clips ? "; 0 never clips" : "");
    CHECK(options_error({option, word}) == told);
    CHECK(options_error({option + "=" + word}) == told);
  }
  CHECK(numbers > 20);
}

TEST_CASE("TrainOptions: implemented options refuse an empty value", "[config][options]") {
  for (const FlagRow& row : implemented_flags()) {
    std::vector<std::string_view> names = split_choices(row.aliases);
    names.push_back(row.name);
    for (const std::string_view name : names) {
      const std::string option = fmt::format("--{}", name);
      CAPTURE(option);
      const std::string told = option + ": needs a value";
      for (const Arguments& typed :
           {Arguments{option + "="}, Arguments{option, ""}, Arguments{option, "", "--seed", "1"}}) {
        CHECK(options_error(typed).starts_with(told));
      }
    }
    if (!row.negatable) continue;
    const std::string negated = fmt::format("--no_{}", row.name);
    CHECK(contains(options_error({negated + "="}), ": takes no value; leave the value out"));
    CHECK(contains(options_error({negated, ""}), ": takes no value; leave the value out"));
  }
  CHECK(options_error({"--bf16="}) == "--bf16: needs a value: true or false");
  CHECK(options_error({"--no-shuffle", ""}) == "--no_shuffle: needs a value: true or false");
}

TEST_CASE("TrainOptions: an empty value of other options sets nothing", "[config][options]") {
  for (const FlagRow& row : foreign_flags()) {
    std::vector<std::string_view> names = split_choices(row.aliases);
    names.push_back(row.name);
    for (const std::string_view name : names) {
      const std::string option = fmt::format("--{}", name);
      CAPTURE(option);
      for (const Arguments& typed :
           {Arguments{option + "=", "--seed", "7"}, Arguments{option, "", "--seed", "7"},
            Arguments{"--seed", "7", option, ""}, Arguments{"--seed", "7", option + "="}}) {
        const TrainOptions options = read_train_flags(typed);
        CHECK(options.warnings.empty());
        CHECK(options.statements.empty());
        CHECK(options.seed.value == 7);
      }
    }
  }
}

TEST_CASE("TrainOptions: a negation takes no value", "[config][options]") {
  CHECK(options_error({"--no_packing", "false"}) ==
        "--no_packing false: takes no value; write --packing true");
  CHECK(options_error({"--no-packing=false"}) ==
        "--no_packing false: takes no value; write --packing true");
  CHECK(options_error({"--no_tf32", "yes", "--seed", "1"}) ==
        "--no_tf32 yes: takes no value; leave the value out");
  CHECK_FALSE(read_train_flags(Arguments{"--no_packing", "--seed", "1"}).packing.value);
  CHECK_FALSE(read_train_flags(Arguments{"--no_packing", "--packing", "False"}).packing.value);
}

TEST_CASE("TrainOptions: two names of an option may say the same", "[config][options]") {
  const auto typed = GENERATE(values<Arguments>({
      {"--lr", "1e-4", "--learning_rate", "0.0001"},
      {"--warmup_ratio", "0.03", "--warmup", ".03"},
      {"--evaluation_strategy", "NO", "--eval_strategy", "no"},
      {"--max_seq_length", "1_024", "--cutoff_len", "1024", "--max_len", "1024"},
      {"--neat_packing", "False", "--reset_attention_mask", "false"},
  }));
  CAPTURE(typed);
  CHECK(options_error(typed) == "no error");
}

TEST_CASE("TrainOptions: a third name that differs is refused", "[config][options]") {
  CHECK(options_error({"--block_size", "64", "--max_length", "64", "--max_len", "32"}) ==
        "--block_size 64 and --max_len 32 are the same option; keep one");
}

TEST_CASE("TrainOptions: foreign options are reported separately", "[config][options]") {
  CHECK(options_error({"--load_in_8bit", "False", "--load_in_4bit", "False"}) == "no error");
  CHECK(options_error({"--load_in_8bit", "True", "--load_in_4bit", "False"}) ==
        "--load_in_8bit True: weights of fewer than 16 bits are not implemented; leave it out or "
        "set it to false");
  CHECK(options_error({"--use_peft", "True", "--use_lora", "False"}) ==
        "--use_peft True: LoRA is not implemented; all parameters are trained; leave it out or set "
        "it to false");
}

TEST_CASE("TrainOptions: stray words are refused with advice", "[config][options]") {
  struct Row {
    Arguments arguments;
    std::string message;
  };
  const Row row = GENERATE(values<Row>({
      {{"--", "--seed", "1"}, "--: leave it out: the options of train stand right behind the word"},
      {{"--seed", "1", "--"}, "--: leave it out: the options of train stand right behind the word"},
      {{"\u2014-learning_rate", "1e-4"},
       "\u2014-learning_rate: begins with a typographic dash; write --learning_rate"},
      {{"--seed", "1", "\u2013bf16"}, "\u2013bf16: begins with a typographic dash; write --bf16"},
      {{"--no_shuffle", "\u2014bf16"}, "\u2014bf16: begins with a typographic dash; write --bf16"},
      {{"\u2014quux", "5"}, "\u2014quux: begins with a typographic dash; write --quux"},
      {{"--seed", "1", "x.yaml"},
       "x.yaml: an argument without an option; a file of options is --config x.yaml"},
      {{"train.py"},
       "train.py: an argument without an option; leave it out: train takes the place of a training "
       "script"},
      {{" "},
       "\" \": an argument without an option; nothing may stand behind the \\ at the end of a "
       "line"},
      {{"--train_file", "\u201csome.txt\u201d"},
       "\u201csome.txt\u201d: has typographic quotes; type \" or ' in place of them"},
      {{"--output_dir", "out\r"},
       "out\\r: ends with a carriage return: the script has the line ends of Windows; convert it: "
       "sed "
       "-i 's/\\r$//' SCRIPT"},
      {{""}, "\"\": an argument without an option"},
  }));
  CAPTURE(row.arguments);
  CHECK(options_error(row.arguments) == row.message);
}

TEST_CASE("TrainOptions: JSON in place of the configuration file", "[config][options]") {
  const std::string json = R"({"train_batch_size": 4, "zero_optimization": {"stage": 2}})";
  const TrainOptions options = read_train_flags(Arguments{"--deepspeed", json});
  CHECK(DsConfig::of(options).integer("zero_optimization.stage") == 2);
  CHECK(DsConfig::of(read_train_flags(Arguments{"--deepspeed=" + json})).text() == json);
  const std::string base64 = "eyJ0cmFpbl9iYXRjaF9zaXplIjogNH0=";
  for (const Arguments& typed :
       {Arguments{"--deepspeed_config", base64}, {"--deepspeed", base64}}) {
    CHECK(DsConfig::of(read_train_flags(typed)).integer("train_batch_size") == 4);
  }
  const TempDir folder;
  const Arguments run{"--deepspeed", json, "--output_dir", (folder.path() / "new").string()};
  CHECK_NOTHROW(check_train_paths(read_train_flags(run)));
  const DsConfig wrong = DsConfig::of(read_train_flags(Arguments{"--deepspeed", R"({"zero": 1})"}));
  CHECK(contains(message_of([&] { wrong.problems().throw_if_any(); }), "--deepspeed:1:2: zero: "));
}

TEST_CASE("TrainOptions: an option without its value is refused", "[config][options]") {
  CHECK(contains(options_error({"--lr"}), "--lr"));
  CHECK(contains(options_error({"--train_file", "--lr", "1"}), "--train_file: needs a value"));
  CHECK(contains(options_error({"--train_file="}), "--train_file"));
  CHECK(contains(options_error({"--train_file", ""}), "--train_file: needs a value"));
}

TEST_CASE("TrainOptions: all missing options are reported at once", "[config][options]") {
  CHECK(message_of([] {
          parse_train_options(Arguments{"--deepspeed", "--lr", "x"});
        }) ==
        "--lr: expected a number, got \"x\"\n"
        "--output_dir DIR is required\n"
        "--train_file FILE is required\n"
        "a model is required: --model_name_or_path DIR, or --config_name gpt2 for random weights\n"
        "--deepspeed needs a file, after it or after --deepspeed_config, or --zero_stage N");
  CHECK_NOTHROW(parse_train_options(Arguments{"--deepspeed", "--zero_stage", "2", "--output_dir",
                                              "o", "--train_file", "t", "--config_name", "gpt2"}));
  const Arguments run = {"--output_dir", "o", "--train_file", "t", "--hidden-size", "8"};
  CHECK_NOTHROW(parse_train_options(run));
  Arguments two = run;
  two.insert(two.end(), {"--model_name_or_path", "m"});
  CHECK(contains(message_of([&] { parse_train_options(two); }),
                 "--hidden_size makes random weights, but --model_name_or_path brings its own"));
  Arguments files = run;
  files.insert(files.end(), {"--deepspeed", "a", "--deepspeed_config", "b"});
  CHECK(contains(message_of([&] { parse_train_options(files); }),
                 "--deepspeed a and --deepspeed_config b name two files"));
}

TEST_CASE("TrainOptions: invalid UTF-8 is refused", "[config][options]") {
  const std::string option = GENERATE("--train_file", "--output_dir");
  CHECK(options_error({option, "caf\xE9.bin"}) ==
        "\"caf\\xe9.bin\": is not UTF-8; rename the file");
}

TEST_CASE("TrainOptions: paths are checked", "[config][options]") {
  const TempDir folder;
  const auto in = [&](const std::string& name) {
    return (folder.path() / name).string();
  };
  touch(in("text.txt"));
  touch(in("corpus.bin"));
  touch(in("corpus.idx"));
  std::filesystem::create_directories(in("full"));
  touch(in("full/metrics.jsonl"));
  std::filesystem::create_directories(in("empty"));
  const auto problem = [](const Arguments& arguments) {
    return message_of([&] { check_train_paths(read_train_flags(arguments)); });
  };
  CHECK(problem({"--train_file", in("text.txt"), "--output_dir", in("new")}) == "no error");
  CHECK(problem({"--train_file", in("text.txt"), "--output_dir", in("empty")}) == "no error");
  CHECK(problem({"--output_dir", in("full"), "--overwrite_output_dir"}) == "no error");
  CHECK(problem({"--output_dir", in("full"), "--resume_from_checkpoint", "latest"}) == "no error");
  CHECK(contains(problem({"--output_dir", in("full")}), "is not empty; choose another, or add"));
  std::filesystem::create_directories(in("full/checkpoint-3"));
  std::filesystem::create_directories(in("other/checkpoint-3"));
  for (const char* const own : {"full", "full/", "full/checkpoint-3", "full/checkpoint-3/"}) {
    CHECK(problem({"--output_dir", in("full"), "--resume_from_checkpoint", in(own)}) == "no error");
  }
  const std::string held =
      "--output_dir " + in("full") +
      ": holds checkpoints of a run; add --resume_from_checkpoint latest to resume it, or choose "
      "another directory";
  for (const std::string& other : {in("other"), in("other/checkpoint-3"), std::string("false")}) {
    CHECK(problem({"--output_dir", in("full"), "--resume_from_checkpoint", other}) == held);
  }
  CHECK(problem({"--output_dir", in("full")}) == held);
  std::ofstream(in("full/checkpoint-3/trainer_state.json")) << R"({"version": 1})";
  CHECK(problem({"--output_dir", in("full")}) == held);
  std::ofstream(in("full/checkpoint-3/trainer_state.json")) << R"({"epoch": 1, "log_history": []})";
  const std::string foreign =
      "--output_dir " + in("full") +
      ": holds checkpoint-3, a checkpoint of Hugging Face's Trainer or DeepSpeed, which cannot be "
      "resumed; choose another directory";
  CHECK(problem({"--output_dir", in("full")}) == foreign);
  std::filesystem::remove(in("full/checkpoint-3/trainer_state.json"));
  CHECK(problem({"--output_dir", in("full")}) == held);
  std::filesystem::create_directories(in("full/checkpoint-3/global_step3"));
  std::ofstream(in("full/checkpoint-3/global_step3/zero_pp_rank_0_mp_rank_00_optim_states.pt"))
      << "";
  CHECK(problem({"--output_dir", in("full")}) == foreign);
  CHECK(problem({"--output_dir", in("full"), "--resume_from_checkpoint", in("none")}) ==
        "--resume_from_checkpoint " + in("none") + ": no such directory; " + in("full") +
            " holds checkpoint-3, and latest is the newest");
  CHECK(problem({"--output_dir", in("full"), "--resume_from_checkpoint", "checkpoint-3"}) ==
        "--resume_from_checkpoint checkpoint-3: no such directory; give " +
            in("full/checkpoint-3"));
  CHECK(problem({"--output_dir", in("full"), "--resume_from_checkpoint", "last"}) ==
        "--resume_from_checkpoint last: no such directory; give latest for the newest");
  CHECK(contains(problem({"--output_dir", in("text.txt")}), "is not a directory"));
  CHECK(contains(problem({"--output_dir", in("new"), "--train_file", in("none")}), "no such file"));
  CHECK(problem({"--output_dir", in("new"), "--deepspeed", "zero3"}) ==
        "--deepspeed zero3: no such file; use --zero_stage 3 without it");
  CHECK(problem({"--output_dir", in("new"), "--deepspeed", "default-zero2"}) ==
        "--deepspeed default-zero2: no such file; use --zero_stage 2 without it");
  CHECK(problem({"--output_dir", in("new"), "--data-path", "1", in("text.txt"), "2", in("none")}) ==
        "--data_path " + in("none") + ": no such file");
  CHECK(contains(problem({"--output_dir", in("new"), "--train_file", "a.txt=0.7,b.txt=0.3"}),
                 "no such file; write a mixture as separate words: 0.7 A 0.3 B"));
  CHECK(problem({"--output_dir", in("new"), "--train_file", in("*.bin")}) == "no error");
  CHECK(contains(problem({"--output_dir", in("new"), "--train_file", in("*.tex")}),
                 "no such file; patterns name token files, 'data/*.bin'"));
  CHECK(contains(problem({"--output_dir", in("new"), "--train_file", in("*.txt")}),
                 "no such file; a pattern in quotes is not expanded; give the files that it "
                 "matches: " +
                     in("text.txt")));
  for (const std::string name : {"corpus", "corpus.bin", "corpus.idx"}) {
    CHECK(problem({"--output_dir", in("new"), "--validation_file", in(name)}) == "no error");
  }
  CHECK(problem({"--output_dir", in("new"), "--model_name_or_path", in("text.txt"), "--deepspeed",
                 in("none.json")}) == "--model_name_or_path " + in("text.txt") +
                                          ": is a file; give the directory with "
                                          "config.json and the weights\n--deepspeed " +
                                          in("none.json") + ": no such file");
  touch(in("config.json"));
  CHECK(contains(problem({"--output_dir", in("new"), "--model_name_or_path", in("text.txt")}),
                 "config.json and the weights: " + folder.path().string()));
  CHECK(problem({"--output_dir", in("new"), "--model_name_or_path", in("none")}) ==
        "--model_name_or_path " + in("none") + ": no such directory");
  touch(in("model.gguf"));
  CHECK(contains(problem({"--output_dir", in("new"), "--model_name_or_path", in("model.gguf")}),
                 "model.gguf: is a GGUF file, which is not read"));
  CHECK(
      problem({"--output_dir", in("new"), "--tokenizer_name", in("text.txt")}) ==
      "--tokenizer_name " + in("text.txt") +
          ": is a file; give the directory with the tokenizer's files: " + folder.path().string());
  CHECK(problem({"--output_dir", in("new"), "--tokenizer_name", "no-such/gpt2"}) ==
        "--tokenizer_name no-such/gpt2: no such directory; a tokenizer of the Hugging Face hub is "
        "not downloaded: fetch it yourself, hf download no-such/gpt2 --local-dir gpt2, and give "
        "--tokenizer_name ./gpt2");
}

TEST_CASE("TrainOptions: the everyday help is short and names the full one", "[config][options]") {
  const std::string help = help_text(HelpScope::everyday);
  for (const std::string name :
       {"--model_name_or_path", "--train_file", "--max_steps", "--learning_rate", "--bf16",
        "--output_dir", "--resume_from_checkpoint", "--deepspeed", "--help-all"}) {
    CHECK_THAT(help, ContainsSubstring(name));
  }
  for (const std::string name : {"--adam_beta1", "--seq_length", "--report_to"}) {
    CHECK_THAT(help, !ContainsSubstring(name));
  }
  CHECK(std::ranges::count(help, '\n') < 75);
}

TEST_CASE("TrainOptions: the help has every option of the interface", "[config][options]") {
  const std::string help = help_text(HelpScope::all);
  for (const std::string name : {"--model_name_or_path",
                                 "--config_name",
                                 "--config_overrides",
                                 "--num_layers",
                                 "--hidden_size",
                                 "--num_attention_heads",
                                 "--seq_length",
                                 "--max_position_embeddings",
                                 "--train_file",
                                 "--validation_file",
                                 "--block_size",
                                 "--tokenizer",
                                 "--no_shuffle",
                                 "--max_steps",
                                 "--num_train_epochs",
                                 "--per_device_train_batch_size",
                                 "--gradient_accumulation_steps",
                                 "--learning_rate",
                                 "--weight_decay",
                                 "--adam_beta1",
                                 "--adam_beta2",
                                 "--adam_epsilon",
                                 "--max_grad_norm",
                                 "--lr_scheduler_type",
                                 "--warmup_steps",
                                 "--warmup_ratio",
                                 "--seed",
                                 "--bf16",
                                 "--fp16",
                                 "--tf32",
                                 "--gradient_checkpointing",
                                 "--output_dir",
                                 "--overwrite_output_dir",
                                 "--logging_steps",
                                 "--eval_steps",
                                 "--save_steps",
                                 "--save_total_limit",
                                 "--resume_from_checkpoint",
                                 "--report_to",
                                 "--deepspeed",
                                 "--deepspeed_config",
                                 "--batch_size",
                                 "--micro_batch_size",
                                 "--global_batch_size",
                                 "--train_iters",
                                 "--lr",
                                 "--checkpoint_activations",
                                 "--model_parallel_size"}) {
    CAPTURE(name);
    CHECK(contains(help, name));
  }
  std::size_t start = 0;
  for (std::size_t end = help.find('\n'); end != std::string::npos; end = help.find('\n', start)) {
    CHECK(end - start <= 100);
    start = end + 1;
  }
}
