// --config FILE: options of a YAML or JSON file, beside those that are typed.
#include "runtime/config/options_file.h"

#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/config/ds_config.h"
#include "runtime/config/resolve.h"
#include "runtime/config/train_options.h"
#include "runtime/os/file.h"
#include "tests/config/support.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace dstrain;
using namespace dstrain::config;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using test::message_of;
using Words = std::vector<std::string>;

namespace {

/// A file of options in a folder of its own.
class OptionsFile {
 public:
  explicit OptionsFile(const std::string& text, const std::string& name = "run.yaml")
      : path_((folder_.path() / name).string()) {
    write_text_file(path_, text);
  }
  [[nodiscard]] const std::string& path() const { return path_; }
  TrainOptions read(Words more = {}) const {
    more.insert(more.begin(), {"--config", path_});
    return read_train_flags(more);
  }
  [[nodiscard]] Words words(Words more = {}) const {
    more.insert(more.begin(), {"--config", path_});
    return ExpandedArguments(more).words();
  }
  [[nodiscard]] std::string problem(const Words& more = {}) const {
    return message_of([&] { read(more); });
  }

 private:
  test::TempDir folder_;
  std::string path_;
};

constexpr const char* everything = R"(# a run
config_name: gpt2
per-device-train-batch-size: 4     # dashes, too
learning_rate: 1e-4
bf16: yes
packing: false
no_shuffle: true
train_file: [0.7, a.txt, 0.3, "b c.txt"]
validation_file: held out.txt
max_steps: ~
output_dir: "out"
lr_scheduler_type: 'cosine'
deepspeed:
  zero_optimization: {stage: 2, offload_optimizer: {device: cpu}}
  gradient_clipping: 1e-1
  train_batch_size: 8
)";

}  // namespace

TEST_CASE("Options file: every kind of value is read as if typed", "[config]") {
  const TrainOptions options = OptionsFile(everything).read();
  CHECK(options.config_name.value == "gpt2");
  CHECK(options.per_device_train_batch_size.value == 4);
  CHECK(options.learning_rate.value == 1e-4);
  CHECK(options.bf16.value);
  CHECK_FALSE(options.packing.value);
  CHECK(options.no_shuffle.value);
  REQUIRE(options.train_file.value.size() == 2);
  CHECK(options.train_file.value[1].path == "b c.txt");
  CHECK(options.validation_file.value.front().path == "held out.txt");
  CHECK_FALSE(options.max_steps.typed());
  CHECK(options.lr_scheduler_type.value == "cosine");
  CHECK(OptionsFile("output_dir: 1_0\nconfig_name: 0123\n").words() ==
        Words{"--output_dir=1_0", "--config_name=0123"});
  const auto section = nlohmann::json::parse(options.deepspeed.value);
  CHECK(section == nlohmann::json{{"zero_optimization",
                                   {{"stage", 2}, {"offload_optimizer", {{"device", "cpu"}}}}},
                                  {"gradient_clipping", 0.1},
                                  {"train_batch_size", 8}});
}

TEST_CASE("Options file: JSON says the same", "[config]") {
  const OptionsFile file(R"({"learning_rate": 1e-4, "bf16": true, "max_steps": null,
    "train_file": ["a.txt", "b.txt"], "deepspeed": {"train_batch_size": 8}})",
                         "run.json");
  const TrainOptions options = file.read();
  CHECK(options.learning_rate.value == 1e-4);
  CHECK(options.bf16.value);
  CHECK(options.train_file.value.size() == 2);
  CHECK(nlohmann::json::parse(options.deepspeed.value).at("train_batch_size") == 8);
}

TEST_CASE("Options file: problems of the section have their place in the file", "[config]") {
  for (const char* const name : {"deepspeed", "deepspeed_config"}) {
    const OptionsFile file(
        fmt::format("seed: 1\n\n{}:\n  train_batch_size: 1_6\n  zero_optimisation: {{}}\n"
                    "  fp16: {{enabled: \"yes\", loss_scale: -1}}\n",
                    name));
    // As the launcher reads the options, and as a rank that has them from it.
    const ExpandedArguments given(Words{"--config", file.path()});
    const ExpandedArguments handed(given.words(), OptionPlaces::decode(given.places().encode()));
    for (const ExpandedArguments* const arguments : {&given, &handed}) {
      Words words = arguments->words();
      words.insert(words.end(),
                   {"--output_dir", "o", "--config_name", "gpt2", "--train_file", "t"});
      const TrainOptions options =
          parse_train_options(ExpandedArguments(words, arguments->places()));
      const std::string problem =
          message_of([&] { DsConfig::of(options).problems().throw_if_any(); });
      CHECK_THAT(problem, StartsWith(file.path() + ":5:3: zero_optimisation: unknown key"));
      CHECK_THAT(problem, ContainsSubstring(file.path() + ":6:19: fp16.enabled: expected true or "
                                                          "false, got \"yes\""));
    }
  }
  const OptionsFile quoted("{\n  \"deepspeed\": {\"train_batch_size\": \"8\"}}", "run.json");
  CHECK_THAT(message_of([&] { DsConfig::of(quoted.read()).problems().throw_if_any(); }),
             StartsWith(quoted.path() + ":2:37: train_batch_size: expected a whole number, got "
                                        "\"8\"; without the quotes: 8"));
}

TEST_CASE("Options file: a contradiction names the place of each value", "[config]") {
  const std::string section = "deepspeed:\n  optimizer: {type: AdamW, params: {lr: 0.001}}\n";
  const auto problem = [](const TrainOptions& options) {
    return message_of([&] { resolve(options, {.world_size = 1}); });
  };
  const OptionsFile both("learning_rate: 1e-4\n" + section);
  CHECK_THAT(problem(both.read()),
             ContainsSubstring(fmt::format("{0}:3:41: optimizer.params.lr: is 0.001 here, but "
                                           "--learning_rate is 0.0001 at {0}:1; give one",
                                           both.path())));
  const OptionsFile one(section);
  CHECK_THAT(problem(one.read({"--lr", "1e-4"})),
             ContainsSubstring("but --lr is 0.0001 on the command line; give one"));
}

TEST_CASE("Options file: a dump of TrainingArguments trains as its values say", "[config]") {
  const OptionsFile file(R"({
    "output_dir": "out",
    "activation_checkpointing": true, "gradient_checkpointing": true, "use_cache": false,
    "trackio_bucket_id": null, "trackio_static_space_id": false, "enable_jit_checkpoint": false,
    "dataloader_multiprocessing_context": null, "dataloader_in_order": true,
    "train_sampling_strategy": "random", "ddp_static_graph": null, "hub_token": "<HUB_TOKEN>",
    "include_num_input_tokens_seen": "no", "report_to": [], "fsdp": null, "deepspeed": null,
    "of_a_later_release": false, "another_of_it": {}, "do_eval": false, "do_train": false})",
                         "args.json");
  const TrainOptions options = file.read();
  CHECK(options.gradient_checkpointing.value);
  CHECK(trains(options));
  REQUIRE(options.warnings.size() == 2);
  CHECK(options.warnings[0] ==
        file.path() + ":8: do_train: false: has no effect without do_eval: true");
  CHECK(options.warnings[1] ==
        file.path() +
            ": keys that dstrain does not know, ignored because they are false or empty: "
            "of_a_later_release, another_of_it");
  CHECK_THAT(OptionsFile("of_a_later_release: 3\nanother: x\npackin: false\n").problem(),
             ContainsSubstring(":1: --of_a_later_release: unknown option") &&
                 ContainsSubstring(":2: --another: unknown option") &&
                 ContainsSubstring(":3: --packin: unknown option; did you mean --packing?"));
  CHECK_FALSE(trains(OptionsFile("do_train: false\ndo_eval: true\n").read()));
}

TEST_CASE("Options file: what other programs dump has its own messages", "[config]") {
  const TrainOptions options = OptionsFile(
                                   "{\"accelerator_config\": {\"split_batches\": false}, "
                                   "\"lr_scheduler_kwargs\": {}, \"label_names\": null}",
                                   "args.json")
                                   .read();
  CHECK(options.warnings.empty());
}

TEST_CASE("Options file: typed options replace those of the file under any name", "[config]") {
  const OptionsFile file("batch_size: 4\nbf16: true\ntrain_file: [a, b]\nno_packing: true\n");
  CHECK(file.words({"--per-device-train-batch-size", "2"}) ==
        Words{"--bf16=true", "--train_file", "a", "b", "--no_packing",
              "--per-device-train-batch-size", "2"});
  const TrainOptions options =
      file.read({"--micro_batch_size=2", "--train_file", "c", "--bf16=false", "--packing"});
  CHECK(options.per_device_train_batch_size.value == 2);
  CHECK_FALSE(options.bf16.value);
  CHECK(options.packing.value);
  CHECK(options.train_file.value.size() == 1);
  CHECK(
      OptionsFile("deepspeed: {train_batch_size: 8}\n").words({"--deepspeed_config", "ds.json"}) ==
      Words{"--deepspeed_config", "ds.json"});
}

TEST_CASE("Options file: it may stand first without an option", "[config]") {
  const OptionsFile file("seed: 7\n", "run.yml");
  CHECK(ExpandedArguments(Words{file.path(), "--lr", "1"}).words() ==
        Words{"--seed=7", "--lr", "1"});
  CHECK(ExpandedArguments(Words{fmt::format("--config={}", file.path())}).words() ==
        Words{"--seed=7"});
  CHECK(ExpandedArguments(Words{"--lr", "1"}).words() == Words{"--lr", "1"});
  CHECK_THAT(message_of([&] {
               read_train_flags(Words{"--seed", "1", "x.yaml"});
             }),
             ContainsSubstring("x.yaml: an argument without an option; a file of options is "
                               "--config x.yaml"));
}

TEST_CASE("Options file: problems are told with file and line", "[config]") {
  struct Row {
    const char* text;
    const char* told;
  };
  for (const Row& row : {
           Row{"seed: 1\nlearning_rat: 1\n",
               ":2: --learning_rat: unknown option; did you mean "
               "--learning_rate?"},
           Row{"seed: 1\n\nbf16: maybe\n", ":3: --bf16: expected true or false, got \"maybe\""},
           Row{"max_steps: many\n", ":1: --max_steps: expected a whole number, got \"many\""},
           Row{"max_steps: [1, 2]\n", ":1:1: max_steps: takes one value, not a list"},
           Row{"seed: 1\nseed: 2\n", ":2:1: seed: is there already, in line 1"},
           Row{"bf16:\n  seed: 1\n",
               ":1:1: bf16: is a section; the option has one value, and "
               "DeepSpeed's sections stand below deepspeed:"},
           Row{"training:\n  seed: 1\n", ":1: --training: unknown option"},
           Row{"datasets:\n  - path: x\n", ":1: --datasets: unknown option"},
           Row{"frobnicate: 1\n", ":1: --frobnicate: unknown option"},
           Row{"learning_rat:\n", ":1: --learning_rat: unknown option; did you mean"},
           Row{"<<: {seed: 1}\n", ":1:1: <<: YAML's merge keys are not read"},
           Row{"deepspeed:\n  a:\n\t  b: 1\n", ":3:1: is indented by a tab; YAML needs spaces"},
           Row{"seed: 1\noutput_dir: caf\xe9\n", ":2:16: is not UTF-8; save it as UTF-8"},
           Row{"\xff\xfes\n", ":1:1: is UTF-16; save it as UTF-8"},
           Row{"seed: 1\n# \xc3\xa9 \x01\n", ":2:5: holds the control character 0x01"},
           Row{"seed: 1\nlearning_rate:1e-3",
               ":2:1: learning_rate:1e-3: is not the name of an option"},
           Row{"learning-rate: 1\nlearning_rate: 2\n", ":2:1: learning_rate: is there already, at"},
           Row{"--seed: 1\n", ":1:1: --seed: a key is the name of an option, without dashes"},
           Row{"config: x.yaml\n", ":1:1: config: a file of options names no other"},
           Row{"- seed\n", ":1:1: expected lines with NAME: VALUE"},
           Row{"seed: 1\n---\nseed: 2\n", "begins a second document; keep one"},
           Row{"seed: [1\n", ": "},
           Row{"seed: 1\n  bf16: true\n", ": "},
           Row{"train_file: [[a]]\n", "a list has plain values only"},
           Row{"fp16_backend: amp\nseed: -1\n", ":2: --seed: must be at least 0, got -1"},
       }) {
    CAPTURE(row.text);
    const OptionsFile file(row.text);
    const std::string problem = file.problem();
    CHECK_THAT(problem, StartsWith(file.path()) && ContainsSubstring(row.told));
  }
}

TEST_CASE("Options file: other settings are told where they belong", "[config]") {
  CHECK_THAT(OptionsFile("{\"train_batch_size\": 8}", "ds.json").problem(),
             ContainsSubstring("ds.json is a configuration of DeepSpeed: use --deepspeed "));
  CHECK_THAT(OptionsFile("{\"model_type\": \"gpt2\"}", "config.json").problem(),
             ContainsSubstring("config.json is a model's: use --config_name "));
  CHECK_THAT(OptionsFile("distributed_type: DEEPSPEED\n").problem(),
             ContainsSubstring("is accelerate's"));
  CHECK_THAT(OptionsFile("train_batch_size: 8\n").problem(),
             ContainsSubstring("is a configuration of DeepSpeed: put its lines below a line "
                               "deepspeed:"));
}

TEST_CASE("Options file: places that the launcher did not write are refused", "[config]") {
  for (const char* const text : {"", "{}", "x", R"({"file": 1, "lines": {}, "section": []})",
                                 R"({"file": "a", "lines": {}, "section": [3]})"}) {
    CHECK_THAT(message_of([&] { OptionPlaces::decode(text); }),
               StartsWith("environment variable DSTRAIN_OPTION_PLACES: "));
  }
}

TEST_CASE("Options file: it does not hide what is typed", "[config]") {
  const OptionsFile file("seed: 1\n");
  CHECK_THAT(file.problem({"--learning_rat", "1"}), StartsWith("--learning_rat: unknown option"));
  CHECK_THAT(file.problem({"--config", file.path()}), ContainsSubstring("names a file already"));
  CHECK_THAT(message_of([] { read_train_flags(Words{"--config"}); }),
             ContainsSubstring("--config: needs a value"));
  CHECK_THAT(message_of([] {
               read_train_flags(Words{"--config", "nowhere.yaml"});
             }),
             ContainsSubstring("nowhere.yaml"));
}

TEST_CASE("Options file: hostile YAML ends in an error", "[config]") {
  std::string aliases = "a: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    aliases +=
        fmt::format("b{0}: &a{0} [*a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}, *a{1}]\n", i, i - 1);
  }
  std::string deep;
  for (int i = 0; i < 5'000; ++i) deep += "[";
  for (const std::string& text :
       {aliases, "a: " + deep, std::string(2'000'000, 'a'), std::string("\xff\xfe\x00s", 4),
        std::string("a: !!binary |\n ?\n: [}")}) {
    CHECK_FALSE(OptionsFile(text).problem().empty());
  }
}
