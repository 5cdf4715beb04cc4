#include "launcher/job/watch.h"

#include <array>

#include "tests/launcher/seen_ranks.h"
#include "tests/support/catch.h"

using namespace dstrain;
using namespace dstrain::launcher;
using test::SeenRank;

namespace {

constexpr std::array<int, 2> both{0, 1};

/// Two ranks of one agent that looks once a second, and a least time of 10 s.
struct Job {
  Watch watch{10};
  SeenRank rank0;
  SeenRank rank1;
  std::int64_t seconds = 0;
  int hangs = 0;
  int moves_again = 0;

  void look(double counted = 1) {
    ++seconds;
    watch.take(both, {.now_ns = seconds * 1'000'000'000,
                      .seconds = counted,
                      .ranks = {rank0.look(0), rank1.look(1)}});
    const Watch::News news = watch.judge();
    hangs += news == Watch::News::hangs ? 1 : 0;
    moves_again += news == Watch::News::moves_again ? 1 : 0;
  }
  void stand(int looks) {
    for (int i = 0; i < looks; ++i) look();
  }
  /// Steps, each of which takes so many looks.
  void train(int steps, int looks_each = 1) {
    for (int i = 0; i < steps; ++i) {
      stand(looks_each - 1);
      for (SeenRank* rank : {&rank0, &rank1}) {
        ++rank->changes;
        ++rank->step;
        ++rank->sequence;
      }
      look();
    }
  }
};

}  // namespace

TEST_CASE("Watch: a job that stands still after some steps hangs once", "[launcher]") {
  Job job;
  job.train(5);
  job.stand(9);
  CHECK(job.hangs == 0);
  job.stand(1);
  CHECK(job.hangs == 1);
  job.stand(1000);
  CHECK(job.hangs == 1);
  CHECK(job.moves_again == 0);
  job.train(1);
  CHECK(job.moves_again == 1);
  job.stand(1000);
  CHECK(job.hangs == 2);
}

TEST_CASE("Watch: the limit follows the usual step time up and down", "[launcher]") {
  Job job;
  job.train(5, 20);  // 20 s each
  CHECK(job.watch.limit_seconds() == Catch::Approx(100).margin(6));
  job.stand(90);
  CHECK(job.hangs == 0);
  job.stand(15);
  CHECK(job.hangs == 1);
  job.train(500);
  CHECK(job.watch.limit_seconds() == 10);
}

TEST_CASE("Watch: phases of unpredictable length have their own limit", "[launcher]") {
  const RunPhase phase = GENERATE(RunPhase::starting, RunPhase::meeting, RunPhase::loading,
                                  RunPhase::saving, RunPhase::awaiting_save, RunPhase::exporting);
  CAPTURE(static_cast<int>(phase));
  Job job;
  job.train(5);
  job.rank0.phase = job.rank1.phase = phase;
  ++job.rank0.changes;
  job.look();
  job.stand(199);
  CHECK(job.hangs == 0);
  job.stand(2);
  CHECK(job.hangs == 1);
}

TEST_CASE("Watch: a suspended rank hangs after the minimum limit", "[launcher]") {
  Job job;
  job.train(5, 20);
  job.rank0.phase = job.rank1.phase = RunPhase::saving;
  job.rank1.state = 'T';
  ++job.rank0.changes;
  job.look();
  job.stand(9);
  CHECK(job.hangs == 0);
  job.stand(1);
  CHECK(job.hangs == 1);
}

TEST_CASE("Watch: the first steps may be slow", "[launcher]") {
  Job job;
  job.stand(190);
  job.train(1);
  job.stand(190);
  CHECK(job.hangs == 0);
}

TEST_CASE("Watch: one rank that moves keeps the job alive", "[launcher]") {
  Job job;
  job.train(5);
  for (int i = 0; i < 100; ++i) {
    ++job.rank1.changes;
    job.look();
  }
  CHECK(job.hangs == 0);
  job.stand(20);
  CHECK(job.hangs == 1);
}

TEST_CASE("Watch: votes during a save are no progress but written pieces are", "[launcher]") {
  Job job;
  job.train(5);
  job.rank0.phase = job.rank1.phase = RunPhase::awaiting_save;
  job.rank1.saves = true;
  for (int i = 0; i < 400; ++i) {
    ++job.rank0.sequence;
    ++job.rank1.sequence;
    ++job.rank1.save_changes;
    job.look();
  }
  CHECK(job.hangs == 0);
  for (int i = 0; i < 201; ++i) {
    ++job.rank0.sequence;
    ++job.rank1.sequence;
    job.look();
  }
  CHECK(job.hangs == 1);
}

TEST_CASE("Watch: time in which agents did not look does not count", "[launcher]") {
  Job job;
  job.train(5);
  for (int i = 0; i < 1000; ++i) job.look(0);  // output was held, or the agent stopped
  CHECK(job.hangs == 0);
}

TEST_CASE("Watch: is silent for programs that publish nothing and if switched off", "[launcher]") {
  Job silent;
  silent.rank0 = silent.rank1 = {.changes = 0, .sequence = 0};
  silent.stand(1000);
  CHECK(silent.hangs == 0);
  Job never;
  never.watch = Watch(0);
  never.train(5);
  never.stand(1000);
  CHECK(never.hangs == 0);
}

TEST_CASE("Watch: ranks that have ended are not waited for", "[launcher]") {
  Job job;
  job.train(5);
  job.watch.rank_ended(0);
  job.watch.rank_ended(1);
  CHECK(job.watch.judge() == Watch::News::none);
  CHECK(job.watch.still_seconds() == 0);
}

TEST_CASE("Watch: only files and phases of a save count as its progress", "[launcher]") {
  Job job;
  job.train(3);
  CHECK_FALSE(job.watch.saves());
  job.rank0.saves = true;  // beside training
  ++job.rank0.save_changes;
  job.look();
  CHECK(job.watch.saves());
  CHECK(job.watch.take_save_move());
  job.train(1);
  CHECK(job.watch.saves());
  CHECK_FALSE(job.watch.take_save_move());
  ++job.rank0.save_changes;
  job.look();
  CHECK(job.watch.take_save_move());
  job.look();
  CHECK_FALSE(job.watch.take_save_move());
  job.rank0.phase = job.rank1.phase = RunPhase::awaiting_save;
  job.look();
  ++job.rank1.sequence;  // the votes of ranks that only wait
  job.look();
  CHECK_FALSE(job.watch.take_save_move());
  job.watch.rank_ended(0);
  job.watch.rank_ended(1);
  CHECK_FALSE(job.watch.saves());
}
