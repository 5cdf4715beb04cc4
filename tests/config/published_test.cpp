#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "runtime/config/ds_config.h"
#include "tests/config/support.h"

namespace fs = std::filesystem;
using dstrain::config::DsConfig;
using dstrain::test::contains;
using dstrain::test::message_of;

namespace {

const fs::path folder = fs::path(DSTRAIN_SOURCE_DIR) / "tests/config/published";

struct Row {
  std::string name;
  std::vector<std::string> not_built;  // keys that must be refused; none: the file is accepted
};

const std::vector<Row> rows = {
    {"accumulation_auto", {}},
    {"accumulation_manual", {}},
    {"adamw_auto", {}},
    {"adamw_manual", {}},
    {"amp_auto", {}},
    {"amp_on", {"amp.enabled"}},
    {"batch_auto", {}},
    {"batch_manual", {}},
    {"bf16_auto", {}},
    {"bf16_on", {}},
    {"clipping_auto", {}},
    {"clipping_manual", {}},
    {"communication_fp32", {}},
    {"everything_commented", {"fp16.enabled", "tensorboard.enabled"}},
    {"force_cpu_optimizer", {}},
    {"fp16_auto", {}},
    {"fp16_off", {}},
    {"fp16_on", {"fp16.enabled"}},
    {"gather_on_save", {}},
    {"inference_offload", {}},
    {"megatron_zero1", {}},
    {"megatron_zero2", {}},
    {"megatron_zero3_offload", {}},
    {"node_local_storage", {}},
    {"round_robin", {}},
    {"untested_optimizer", {}},
    {"warmup_auto", {}},
    {"warmup_decay", {"scheduler.type"}},
    {"warmup_manual", {}},
    {"zero0", {}},
    {"zero1", {}},
    {"zero2_auto", {}},
    {"zero2_manual", {"fp16.enabled"}},
    {"zero2_one_gpu", {}},
    {"zero2_section", {}},
    {"zero3_auto", {}},
    {"zero3_manual", {"fp16.enabled"}},
    {"zero3_nvme", {}},
    {"zero3_section", {}},
};

// Broken as they were printed.
const std::set<std::string> no_json = {"megatron_missing_comma", "python_inference"};

std::size_t line_count(const std::string& text) {
  return 1 + static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("Published: configurations of tutorials are understood", "[config][published]") {
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const fs::path file = folder / (row.name + ".json");
    const std::string error = message_of([&] { DsConfig::load(file).problems().throw_if_any(); });
    CAPTURE(error);
    if (row.not_built.empty()) {
      CHECK(error == "no error");
      continue;
    }
    CHECK(line_count(error) == row.not_built.size());
    for (const std::string& key : row.not_built) CHECK(contains(error, ": " + key + ": "));
    CHECK(contains(error, "not implemented"));
    CHECK_FALSE(contains(error, "unknown"));
  }
}

TEST_CASE("Published: what is no JSON is told with its place", "[config][published]") {
  const auto error_of = [](const std::string& name) {
    return message_of([&] { DsConfig::load(folder / (name + ".json")); });
  };
  CHECK(contains(error_of("megatron_missing_comma"), ":7:9: expected , or }, got \""));
  CHECK(contains(error_of("python_inference"), ":3:20: False: that is Python; write false"));
}

TEST_CASE("Published: every file is in a table", "[config][published]") {
  std::set<std::string> known = no_json;
  for (const Row& row : rows) known.insert(row.name);
  std::set<std::string> there;
  for (const auto& entry : fs::directory_iterator(folder)) there.insert(entry.path().stem());
  CHECK(there == known);
}

TEST_CASE("Published: spellings that DeepSpeed ignores get a warning each", "[config][published]") {
  const DsConfig config = DsConfig::parse(R"({
  "seed": 1234,
  "bfp16": {"enabled": false},
  "zero_optimization": {"stage3_max_act_size": 1e9, "aio": {"thread_count": 1}},
  "activation_checkpointing": {"enabled": true},
  "pipeline": {"micro_batch_size": 0},
  "scheduler": {"type": "WarmupLR", "params": {"last_batch_iteration": -1}}
})",
                                          "ds.json");
  const std::vector<std::string> places = {"ds.json:2:11: seed: ",
                                           "ds.json:3:3: bfp16: ",
                                           "ds.json:4:48: zero_optimization.stage3_max_act_size: ",
                                           "ds.json:4:60: zero_optimization.aio: ",
                                           "ds.json:5:43: activation_checkpointing.enabled: ",
                                           "ds.json:6:36: pipeline.micro_batch_size: ",
                                           "ds.json:7:72: scheduler.params.last_batch_iteration: "};
  REQUIRE(config.warnings().size() == places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    CAPTURE(config.warnings()[i]);
    CHECK(config.warnings()[i].starts_with(places[i]));
  }
}
