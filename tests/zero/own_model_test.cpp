// Models other than GPT-2 at every stage: the example of one's own, and a Llama.

#include "examples/models/parallel_gpt.h"
#include "runtime/model/llama.h"
#include "tests/support/catch.h"
#include "tests/support/tensor_compare.h"
#include "tests/zero/training_fixture.h"

namespace dstrain {
namespace {

model::Model parallel_gpt(const model::UnitOptions& options) {
  return examples::make_parallel_gpt({.vocabulary = 37,
                                      .positions = 10,
                                      .hidden = 20,
                                      .layers = 3,
                                      .heads = 2,
                                      .kv_heads = 1,
                                      .rotary_dims = 6,
                                      .dropout = 0.2F},
                                     options);
}

model::Model llama(const model::UnitOptions& options) {
  model::LlamaConfig config;
  config.vocab_size = 37;
  config.hidden_size = 20;
  config.intermediate_size = 28;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 6;
  config.max_position_embeddings = 10;
  config.initializer_range = 0.3F;
  config.head_norms = config.qkv_bias = true;
  return make_llama(config, options);
}

test::TrainingCase case_of(int model, DType dtype) {
  test::TrainingCase settings;
  settings.model = model == 0 ? parallel_gpt : llama;
  settings.dtype = dtype;
  return settings;
}

TEST_CASE("Own model: all stages have the same bits and take what is planned",
          "[zero][own_model]") {
  const int model = GENERATE(0, 1);
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  test::TrainingCase settings = case_of(model, dtype);
  settings.world = GENERATE(1, 2, 3);
  settings.in_splits = GENERATE(1, 3);
  settings.mode = GENERATE(engine::FrameMode::training, engine::FrameMode::checkpointing);
  CAPTURE(model, name_of(dtype), settings.world, settings.in_splits);
  const test::TrainingResult plain = run_training(settings);
  check_planned(plain);
  CHECK(plain.losses.back() > 3);  // tokens are random: ln 37 is 3.6
  for (const int stage : {1, 2, 3}) {
    CAPTURE(stage);
    settings.stage = stage;
    const test::TrainingResult sharded = run_training(settings);
    check_same_bits(sharded, plain);
    check_planned(sharded);
  }
}

TEST_CASE("Own model: offload and a device that runs ahead change no bit", "[zero][own_model]") {
  const int model = GENERATE(0, 1);
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  test::TrainingCase settings = case_of(model, dtype);
  settings.world = 2;
  CAPTURE(model, name_of(dtype));
  const test::TrainingResult plain = run_training(settings);
  settings.stage = 3;
  settings.overlap.enabled = true;
  settings.offload.parameters = settings.offload.optimizer = MemoryTier::host;
  const test::TrainingResult offloaded = run_training(settings);
  check_same_bits(offloaded, plain);
  check_planned(offloaded);
  settings.offload = {};
  settings.deferred = 7;
  check_same_bits(run_training(settings), plain);
}

}  // namespace
}  // namespace dstrain
