// A student learns what a frozen teacher says: two engines of one process. The teacher's likeliest
// token after each position is the student's label.
//
//   dstrain --num_gpus 2 ./distill teacher_dir ds_config.json book.txt student_dir 200
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "byte_samples.h"

namespace {

constexpr std::int64_t length = 32;

/// The likeliest token at each position.
std::vector<std::int32_t> answers(dstrain::Engine& teacher, const dstrain::Batch& batch) {
  const std::vector<float> logits = teacher.logits(batch);
  const std::int64_t vocabulary = teacher.outputs();
  std::vector<std::int32_t> labels(batch.tokens.size());
  auto row = logits.begin();
  for (std::int32_t& label : labels) {
    label = static_cast<std::int32_t>(std::max_element(row, row + vocabulary) - row);
    row += vocabulary;
  }
  return labels;
}

void distill(const char* teacher_directory,
             const char* config_file,
             const char* text,
             const char* output,
             std::int64_t steps) {
  dstrain::Rank rank;
  const auto config = dstrain::Config::from_file(config_file);
  auto teacher =
      dstrain::initialize(rank, config, dstrain::Model::from_pretrained(teacher_directory),
                          {.length = length, .trains = false});
  auto student =
      dstrain::initialize(rank, config,
                          dstrain::Model::from_config("gpt2",
                                                      "n_layer=1,n_embd=32,n_head=2,vocab_size=256,"
                                                      "n_positions=32"),
                          {.length = length});
  ByteSamples samples(text, length);
  while (student.steps() < steps) {
    dstrain::Batch batch = samples.next(rank, student);
    const std::vector<std::int32_t> labels = answers(teacher, batch);
    batch.labels = labels;
    const dstrain::StepResult result = student.train_batch(batch);
    if (rank.rank() == 0) {
      std::printf("step %lld loss %.17g\n", static_cast<long long>(result.step), result.loss);
    }
  }
  student.save_pretrained(output);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: distill TEACHER_DIR DS_CONFIG TEXT STUDENT_DIR STEPS\n");
    return 2;
  }
  try {
    distill(argv[1], argv[2], argv[3], argv[4], std::atoll(argv[5]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
