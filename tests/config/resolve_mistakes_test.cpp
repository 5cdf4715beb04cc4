
#include "runtime/config/resolve.h"
#include "tests/config/support.h"
#include "tests/support/catch.h"

using namespace dstrain::config;
using dstrain::test::message_of;

namespace {

/// What two ranks that learn at a typed rate are told of a configuration.
std::string mistakes_in(const std::string& text) {
  const std::vector<std::string> flags{"--learning_rate", "1e-3"};
  return message_of([&] {
    resolve_config(read_train_flags(flags), DsConfig::parse(text, "ds.json"), {.world_size = 2});
  });
}

}  // namespace

TEST_CASE("Resolve: schema errors do not hide other errors", "[config][resolve]") {
  CHECK(mistakes_in(R"({
  "train_batch_size": 10, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 2,
  "steps_per_prnt": 5,
  "fp16": {"enabled": true, "loss_scale_window": 0},
  "zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}, "cycle": 1},
  "aio": {"block_size": 5000}
})") == "ds.json:2:23: Check batch related parameters. train_batch_size is not equal to "
        "train_micro_batch_size_per_gpu * gradient_accumulation_steps * world size: 10 != 3 * 2 * "
        "2; the launch has 2 ranks: set train_batch_size to 12\n"
        "ds.json:3:3: steps_per_prnt: unknown key; did you mean \"steps_per_print\"?\n"
        "ds.json:4:50: fp16.loss_scale_window: must be at least 1 if the loss scale is dynamic, "
        "got 0\n"
        "ds.json:5:69: zero_optimization.offload_optimizer.device: needs stage 1, 2 or 3, but the "
        "stage is 0\n"
        "ds.json:5:77: zero_optimization.cycle: unknown key; DeepSpeed has no such key here\n"
        "ds.json:6:25: aio.block_size: must be a multiple of 4096, got 5000");
}

TEST_CASE("Resolve: a given key counts even if a misspelling suggests it", "[config][resolve]") {
  CHECK(mistakes_in(R"({"train_batch_size": 2,
  "zero_optimization": {"stge": 2, "stage": 0, "offload_optimizer": {"device": "cpu"}}})") ==
        "ds.json:2:25: zero_optimization.stge: unknown key; did you mean \"stage\"?\n"
        "ds.json:2:80: zero_optimization.offload_optimizer.device: needs stage 1, 2 or 3, but the "
        "stage is 0");
}

TEST_CASE("Resolve: a wrong value causes no follow-up errors", "[config][resolve]") {
  struct Row {
    std::string text, message;
  };
  const Row row = GENERATE(values<Row>({
      {R"({"train_batch_size": "8", "train_micro_batch_size_per_gpu": 3})",
       R"(ds.json:1:22: train_batch_size: expected a whole number, got "8"; )"
       "without the quotes: 8"},
      {R"({"train_batchsize": 8})",
       R"(ds.json:1:2: train_batchsize: unknown key; did you mean "train_batch_size"?)"},
      {R"({"train_batch_size": 2, "zero_optimization": {"stage": 4,
          "offload_optimizer": {"device": "cpu", "ratio": 0.5}}})",
       "ds.json:1:56: zero_optimization.stage: must be between 0 and 3, got 4"},
      {R"({"train_batch_size": 2, "stage": 3,
          "zero_optimization": {"offload_param": {"device": "cpu"}}})",
       R"(ds.json:1:25: stage: unknown key; this key belongs in "zero_optimization")"},
      {R"({"train_batch_size": 2, "zero_optimization": {"stage": 3,
          "offload_param": {"device": "nvme", "nvme_path": 1}}})",
       "ds.json:2:60: zero_optimization.offload_param.nvme_path: expected a string, got 1"},
      {R"({"train_batch_size": 2, "optimizer": {"type": "Adam", "params": {"betas": [0.9]}}})",
       "ds.json:1:75: optimizer.params.betas: must be two numbers in [0, 1)"},
      {R"({"train_batch_size": 2, "scheduler": {"type": "NoLR", "params": {}}})",
       R"(ds.json:1:47: scheduler.type: unknown type "NoLR"; use WarmupLR, )"
       "WarmupDecayLR, WarmupCosineLR, LRRangeTest or OneCycle"},
      {R"({"train_batch_size": 2, "bf16": {"enabled": true},
          "data_types": {"param_dtype": "fp23"}})",
       R"(ds.json:2:41: data_types.param_dtype: must be one of "fp32", "fp16", "bf16", )"
       R"(got "fp23"; did you mean "fp32"?)"},
      {R"({"train_batch_size": 2, "zero_optimization": 3})",
       R"(ds.json:1:46: zero_optimization: expected an object, got 3; write {"stage": 3})"},
  }));
  CAPTURE(row.text);
  CHECK(mistakes_in(row.text) == row.message);
}
