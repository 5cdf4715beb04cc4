#include <string>
#include <vector>

#include "runtime/config/ds_config.h"
#include "tests/support/catch.h"

using dstrain::config::DsConfig;

TEST_CASE("Published: spellings that DeepSpeed ignores get a warning each", "[config][published]") {
  const DsConfig config = DsConfig::parse(R"({
  "seed": 1234,
  "bfp16": {"enabled": false},
  "zero_optimization": {"stage3_max_act_size": 1e9, "aio": {"thread_count": 1}},
  "activation_checkpointing": {"enabled": true},
  "pipeline": {"micro_batch_size": 0},
  "scheduler": {"type": "WarmupLR", "last_batch_iteration": -1},
  "last_batch_iteration": -1,
  "max_grad_norm": 0.5
})",
                                          "ds.json");
  const std::vector<std::string> places = {"ds.json:2:11: seed: ",
                                           "ds.json:3:3: bfp16: ",
                                           "ds.json:4:48: zero_optimization.stage3_max_act_size: ",
                                           "ds.json:4:60: zero_optimization.aio: ",
                                           "ds.json:5:43: activation_checkpointing.enabled: ",
                                           "ds.json:6:36: pipeline.micro_batch_size: ",
                                           "ds.json:7:61: scheduler.last_batch_iteration: ",
                                           "ds.json:8:27: last_batch_iteration: ",
                                           "ds.json:9:20: max_grad_norm: "};
  REQUIRE(config.warnings().size() == places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    CAPTURE(config.warnings()[i]);
    CHECK(config.warnings()[i].starts_with(places[i]));
  }
}
