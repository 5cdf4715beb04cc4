// Takes the place of dstraind in hang_storm_test: the ranks take steps of three collectives without
// end, whatever their arguments are, and one of them does otherwise in one step. They publish what
// training ranks do. ODD_WAY=WAY ODD_RANK=R ODD_STEP=N, and WAY is
//
//   size         sums fewer elements than the others
//   operation    scatters what the others sum
//   order        gathers before it sums
//   vote         votes while the others gather: of another group, which no communicator sees
//   skip_sum     leaves the sum out
//   skip_vote    leaves the vote out and goes on
//   skip_compute leaves the vote out and computes without end in the next step
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/base/error.h"
#include "runtime/base/number.h"
#include "runtime/comm/make_communicator.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/engine/collective_records.h"
#include "runtime/engine/name_collective.h"
#include "runtime/engine/observed_control_group.h"

namespace {

using namespace dstrain;

class Steps {
 public:
  Steps(comm::World& world, ProgressPage& page)
      : page_(page),
        communicator_(*world.communicator),
        records_(nullptr, &page),
        control_(*world.control, page) {
    communicator_.set_observer(&records_);
  }

  /// As the others do, but for `way`; empty: not even that.
  void take(std::int64_t step, const std::string& way) {
    page_.begin_step(step);
    page_.begin_work(Work::forward);
    if (way == "order") gather();
    if (way == "operation") scatter();
    if (way != "skip_sum") sum(way == "size" ? whole_numel / 2 : whole_numel);
    if (way == "vote") vote();
    gather();
    page_.begin_work(Work::vote);
    if (way == "skip_vote") return;
    if (way == "skip_compute") compute_for_ever(step + 1);
    vote();
  }

 private:
  static constexpr std::int64_t whole_numel = 12;  // of 2, 3 or 4 ranks

  void sum(std::int64_t numel) {
    communicator_.all_reduce(
        HostView(std::span(whole_).first(static_cast<std::size_t>(numel)), Shape{numel}), stream_);
  }
  void scatter() { communicator_.reduce_scatter(whole(), shard(), stream_); }
  void gather() { communicator_.all_gather(shard(), whole(), stream_); }
  void vote() { control_.gather(std::int64_t{1}); }
  void compute_for_ever(std::int64_t step) {
    page_.begin_step(step);
    for (std::atomic<long> turns{0};; ++turns) continue;
  }

  HostView whole() { return {whole_, Shape{whole_numel}}; }
  HostView shard() {
    const std::int64_t numel = whole_numel / communicator_.size();
    return {std::span(shard_).first(static_cast<std::size_t>(numel)), Shape{numel}};
  }

  ProgressPage& page_;
  comm::Communicator& communicator_;
  engine::CollectiveRecords records_;
  engine::ObservedControlGroup control_;
  CpuStream stream_{CpuStream::Mode::inline_on_caller};
  std::array<float, whole_numel> whole_{};
  std::array<float, whole_numel> shard_{};
};

void run(const std::string& way, int odd_rank, std::int64_t odd_step, ProgressPage& page) {
  page.enter(RunPhase::meeting);
  comm::World world = comm::join_world(read_worker_env());
  page.enter(RunPhase::training);
  Steps steps(world, page);
  for (std::int64_t step = 1;; ++step) {
    const bool odd = step == odd_step && world.worker.rank == odd_rank;
    if (odd) std::puts("struck");
    if (odd) std::fflush(stdout);
    steps.take(step, odd ? way : "");
  }
}

}  // namespace

int main() {
  ProgressPage page = ProgressPage::from_environment();
  try {
    run(std::getenv("ODD_WAY"), parse_number<int>(std::getenv("ODD_RANK")).value(),
        parse_number<std::int64_t>(std::getenv("ODD_STEP")).value(), page);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", engine::name_collective(error, page).what());
    return exit_status(error.code());
  }
}
