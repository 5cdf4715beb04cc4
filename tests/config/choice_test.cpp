#include "runtime/config/choice.h"

#include <cctype>

#include <nlohmann/json.hpp>

#include "runtime/config/resolve.h"
#include "tests/config/support.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::test::contains;
using dstrain::test::message_of;
using nlohmann::json;

namespace {

json::json_pointer pointer_to(std::string path) {
  for (char& c : path) c = c == '.' ? '/' : c;
  return json::json_pointer("/" + path);
}

/// A configuration in which a word at `path` is looked at, and is alone to decide.
json around(std::string_view path, const std::string& word) {
  json config{{"train_batch_size", 2}};
  if (path.find("offload_") != std::string_view::npos) {
    const json disk{{"nvme_path", "/a"}};
    config["zero_optimization"] = {
        {"stage", 3}, {"offload_optimizer", disk}, {"offload_param", disk}};
  }
  if (path.starts_with("scheduler.")) config["scheduler"]["type"] = "WarmupLR";
  config[pointer_to(std::string(path))] = word;
  return config;
}

struct Outcome {
  bool accepted = false;
  std::string told;  ///< what `config show` prints of the values, or why they are refused
};

Outcome outcome_of(std::string_view path, const std::string& word) {
  Outcome outcome;
  outcome.told = message_of([&] {
    const DsConfig config = DsConfig::parse(around(path, word).dump(), "ds.json");
    const Resolved resolved = resolve_config(read_train_flags({}), config, {.world_size = 2});
    outcome.accepted = true;
    outcome.told = json::parse(report_json(resolved)).at("effective").dump();
    dstrain::fail(dstrain::ErrorCode::config, "{}", outcome.told);
  });
  return outcome;
}

std::string upper(std::string word) {
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word;
}

std::string capitalised(std::string word) {
  word[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(word[0])));
  return word;
}

/// Every word that a key may have, its synonyms, and "auto".
std::vector<std::string> spellable(const Key& key) {
  std::vector<std::string> words{"auto"};
  for (const std::string_view word : words_of(key)) words.emplace_back(word);
  for (const std::string_view pair : split_choices(key.synonyms)) {
    words.emplace_back(pair.substr(0, pair.find(':')));
  }
  return words;
}

TrainSettings settings_with(std::string_view path, const std::string& word) {
  const DsConfig config = DsConfig::parse(around(path, word).dump(), "ds.json");
  return resolve_config(read_train_flags({}), config, {.world_size = 2}).settings;
}

}  // namespace

TEST_CASE("Choice: every spelling of every word resolves as the plain one", "[config][choice]") {
  int keys = 0;
  int respelled = 0;
  for (const Key& key : all_keys()) {
    if (words_of(key).empty()) continue;
    ++keys;
    for (const std::string& word : spellable(key)) {
      const Outcome plain = outcome_of(key.path, word);
      for (const std::string& spelling : {upper(word), capitalised(word)}) {
        CAPTURE(key.path, word, spelling, plain.told);
        const Outcome other = outcome_of(key.path, spelling);
        CAPTURE(other.told);
        CHECK(other.accepted == plain.accepted);
        if (plain.accepted) CHECK(other.told == plain.told);
        respelled += other.accepted && spelling != word ? 1 : 0;
      }
    }
  }
  CHECK(keys > 15);
  CHECK(respelled > 50);
}

TEST_CASE("Choice: quoted numbers and booleans do not turn a feature off", "[config][choice]") {
  for (const Key& key : all_keys()) {
    for (const std::string_view off : split_choices(key.off)) {
      const bool bare = off == "null" || off == "false" || off == "true" || off == "0" ||
                        off == "1" || off == "-1";
      if (!bare) continue;
      CAPTURE(key.path, off);
      CHECK_FALSE(outcome_of(key.path, std::string(off)).accepted);
      CHECK_FALSE(outcome_of(key.path, upper(std::string(off))).accepted);
    }
  }
}

TEST_CASE("Choice: a feature turned off by words lists these words", "[config][choice]") {
  for (const Key& key : all_keys()) {
    if (key.status != KeyStatus::off_only || key.type != KeyType::text) continue;
    CAPTURE(key.path);
    CHECK_FALSE(words_of(key).empty());
  }
}

TEST_CASE("Choice: words in capitals have an effect", "[config][choice]") {
  const std::string_view in = "zero_optimization.offload_optimizer.device";
  const auto device = [&](const std::string& word) {
    return settings_with(in, word).zero.offload_optimizer.device;
  };
  CHECK(device("CPU") == OffloadSettings::Device::cpu);
  CHECK(device("Cpu") == OffloadSettings::Device::cpu);
  CHECK(device("NVME") == OffloadSettings::Device::nvme);
  CHECK(device("NONE") == OffloadSettings::Device::none);
  const auto warmup = [&](const std::string& word) {
    return std::get<WarmupLr>(settings_with("scheduler.params.warmup_type", word).schedule.kind)
        .warmup_type;
  };
  CHECK(warmup("Linear") == WarmupType::linear);
  CHECK(warmup("LOG") == WarmupType::log);
}

TEST_CASE("Choice: a spelling that DeepSpeed does not know gets a warning", "[config][choice]") {
  const auto warnings = [](std::string_view path, const std::string& word) {
    return DsConfig::parse(around(path, word).dump(), "ds.json").warnings();
  };
  const auto told = warnings("scheduler.params.warmup_type", "Linear");
  REQUIRE(told.size() == 1);
  CHECK(contains(told[0],
                 "scheduler.params.warmup_type: \"Linear\" is read as \"linear\"; DeepSpeed does "
                 "not know this spelling"));
  CHECK(warnings("optimizer.type", "ADAMW").empty());
  CHECK(warnings("communication_data_type", "FP32").empty());
  CHECK(warnings("data_types.grad_accum_dtype", "float32").empty());
  CHECK(warnings("data_types.grad_accum_dtype", "Float32").size() == 1);
}

TEST_CASE("Choice: an unknown word is refused with the nearest one", "[config][choice]") {
  CHECK(contains(outcome_of("scheduler.params.warmup_type", "liner").told,
                 "must be one of \"log\", \"linear\", got \"liner\"; did you mean \"linear\"?"));
}
