// A training loop of one's own: a small GPT-2 learns the bytes of a text. Killed and started again,
// it goes on from its last checkpoint.
//
//   dstrain --num_gpus 2 ./trainer ds_config.json book.txt out 200
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "byte_samples.h"

namespace {

constexpr int stopped_with_checkpoint = 75;  // dstrain and its SLURM example start it again then
constexpr std::int64_t length = 32;
constexpr const char* sizes =
    "n_layer=2,n_embd=48,n_head=4,vocab_size=256,n_positions=32,embd_pdrop=0.1,attn_pdrop=0.1,"
    "resid_pdrop=0.1";

int train(const char* config_file, const char* text, const char* output, std::int64_t steps) {
  dstrain::Rank rank;
  const auto config = dstrain::Config::from_file(config_file);
  auto engine = dstrain::initialize(rank, config, dstrain::Model::from_config("gpt2", sizes),
                                    {.length = length});
  if (const auto loaded = engine.load_checkpoint(output); loaded && rank.rank() == 0) {
    std::printf("going on after step %lld\n", static_cast<long long>(loaded->step));
  }
  ByteSamples samples(text, length);
  while (engine.steps() < steps) {
    const dstrain::StepResult result = engine.train_batch(samples.next(rank, engine));
    if (rank.rank() == 0) {
      std::printf("step %lld loss %.17g\n", static_cast<long long>(result.step), result.loss);
      std::fflush(stdout);
    }
    const bool stops = rank.stop_requested();
    if (stops || engine.steps() % 50 == 0) engine.save_checkpoint(output);
    if (stops) return stopped_with_checkpoint;
  }
  engine.save_pretrained(output);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: trainer DS_CONFIG TEXT OUTPUT_DIR STEPS\n");
    return 2;
  }
  try {
    return train(argv[1], argv[2], argv[3], std::atoll(argv[4]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
