#include <map>
#include <mutex>

#include "runtime/base/error.h"
#include "tests/support/catch.h"
#include "tests/zero/training_fixture.h"

using namespace dstrain;
using engine::FrameMode;
using test::run_training;
using test::TrainingCase;
using test::TrainingResult;

namespace {

constexpr zero::Overlap full_overlap{.enabled = true, .prefetch_numel = 1'000'000};

/// The collectives of each rank of a run, in the order in which they ran.
std::map<int, std::vector<std::string>> collectives_of(TrainingCase settings) {
  std::mutex mutex;
  std::map<int, std::vector<std::string>> log;
  settings.watch = [&](int rank, const std::string& operation) {
    const std::lock_guard lock(mutex);
    log[rank].push_back(operation);
  };
  run_training(settings);
  return log;
}

}  // namespace

TEST_CASE("Overlap: changes no bit", "[zero][overlap]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const std::int64_t accumulation = GENERATE(1, 2);
  const auto mode = GENERATE(FrameMode::training, FrameMode::checkpointing);
  const bool bf16 = GENERATE(false, true);
  TrainingCase settings{.world = bf16 ? 3 : 2,
                        .stage = stage,
                        .accumulation = accumulation,
                        .reduce_bucket_numel = bf16 ? 3000 : 0,
                        .mode = mode};
  settings.dtype = bf16 ? DType::bf16 : DType::f32;
  CAPTURE(stage, accumulation, bf16);
  const TrainingResult reference = run_training(settings);
  settings.overlap = full_overlap;
  check_same_bits(run_training(settings), reference);
}

TEST_CASE("Overlap: the limits of gathering change no bit", "[zero][overlap]") {
  TrainingCase settings{.world = 2, .stage = 3, .accumulation = 2, .persistence_threshold = 0};
  const TrainingResult reference = run_training(settings);
  settings.overlap.enabled = true;
  settings.overlap.prefetch_numel = GENERATE(0, 1, 1'000'000);
  settings.overlap.live_numel = GENERATE(7000, 9000, 1'000'000);
  settings.overlap.reuse_numel = GENERATE(0, 1'000'000);
  CAPTURE(settings.overlap.prefetch_numel, settings.overlap.live_numel,
          settings.overlap.reuse_numel);
  const TrainingResult result = run_training(settings);
  check_same_bits(result, reference);
  CHECK(result.peak == result.planned);
}

TEST_CASE("Overlap: the tracked peak is the plan", "[zero][overlap][memory]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const std::int64_t bucket = GENERATE(0, 5000);
  CAPTURE(stage, bucket);
  TrainingCase settings{.world = 2, .stage = stage, .reduce_bucket_numel = bucket, .steps = 1};
  const TrainingResult plain = run_training(settings);
  settings.overlap = full_overlap;
  const TrainingResult result = run_training(settings);
  CHECK(result.peak == result.planned);
  const auto buffers = static_cast<std::size_t>(MemoryCategory::buffers);
  CHECK((result.peak[buffers] > plain.peak[buffers]) == (stage >= 2));
}

TEST_CASE("Overlap: every rank has the same collectives in the same order", "[zero][overlap]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const TrainingCase settings{.world = 3,
                              .stage = stage,
                              .accumulation = 2,
                              .reduce_bucket_numel = 3000,
                              .overlap = full_overlap};
  const auto log = collectives_of(settings);
  REQUIRE(log.size() == 3);
  CHECK(log.at(0).size() > 10);
  CHECK(log.at(1) == log.at(0));
  CHECK(log.at(2) == log.at(0));
}

TEST_CASE("Overlap: a failure of any collective ends every rank", "[zero][overlap][fault]") {
  const int stage = GENERATE(0, 1, 2, 3);
  const int failing = GENERATE(1, 5, 20);
  CAPTURE(stage, failing);
  TrainingCase settings{
      .world = 2, .stage = stage, .persistence_threshold = 0, .overlap = full_overlap};
  int seen = 0;
  settings.watch = [&](int rank, const std::string& /*operation*/) {
    if (rank == 1 && ++seen == failing) fail(ErrorCode::comm, "rank 0 is gone");
  };
  CHECK_THROWS_WITH(run_training(settings), "rank 0 is gone");
}
