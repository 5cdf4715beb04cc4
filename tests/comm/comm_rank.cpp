#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string_view>
#include <vector>

#include <sys/prctl.h>
#include <unistd.h>

#include "runtime/comm/make_communicator.h"
#include "runtime/comm/mpi/mpi_starter.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/os/socket.h"
#include "runtime/tensor/buffer.h"

/// A rank for processes_test: `comm_rank MODE` with the environment of a rank. Prints one line for
/// the test to read; exit status as a rank's.
namespace {

using namespace dstrain;

std::vector<float> values_of(int rank) {
  std::vector<float> values(300'000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((static_cast<int>(i) % 97 + 1) * (rank + 1));
  }
  return values;
}

/// all_reduce, then a split in two and an all_reduce there.
void sum_once(comm::Communicator& world) {
  CpuStream stream(CpuStream::Mode::worker_thread);
  std::vector<float> values = values_of(world.rank());
  const HostView view(values, Shape{static_cast<std::int64_t>(values.size())});
  world.all_reduce(view, stream);
  stream.synchronize();
  const auto half = world.split({.color = world.rank() % 2});
  std::vector<float> one{1};
  half->all_reduce(HostView(one, Shape{1}), stream);
  stream.synchronize();
  const double total = std::accumulate(values.begin(), values.end(), 0.0);
  std::printf("total %.0f half %.0f\n", total, static_cast<double>(one[0]));
}

constexpr std::int64_t small = 300'000;
constexpr std::int64_t large = 8'000'000;  ///< takes long enough to be cut

/// Sums values in `memory` until something fails. Tells the test when the collectives are running.
void sum_forever(comm::Communicator& world, MemoryResource& memory, std::int64_t numel) {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const HostBuffer block(numel * size_of(DType::f32), memory, stream);
  std::ranges::fill(block.as<float>(), 0.0F);
  for (int i = 0;; ++i) {
    world.all_reduce(HostView(block.as<float>(), Shape{numel}), stream);
    if (i == 10) {
      std::printf("running\n");
      std::fflush(stdout);
    }
  }
}

/// Rank 2 dies while the others wait for it.
void die(comm::ControlGroup& control) {
  control.barrier();
  if (control.rank() == 2) std::raise(SIGKILL);
  control.barrier();
}

/// Where the ranks met, and how well the place is guarded.
void tell_rendezvous(const WorkerEnv& worker) {
  std::printf("rank %d met at %s with a token of %zu letters\n", worker.rank,
              to_string(Endpoint{worker.master_addr, worker.master_port}).c_str(),
              worker.token.size());
}

/// Waits until mpirun ends this rank, or is gone.
void stay_out() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) ::pause();
}

/// One rank ends in failure, and the others would go on.
void fail_as_rank_one(comm::ControlGroup& control) {
  if (control.rank() == 1) fail(ErrorCode::timeout, "rank 1 has had enough");
  control.barrier();
}

int run(std::string_view mode) {
  try {
    const WorkerEnv worker = read_worker_env();
    if (mode == "fail_first" && worker.rank == 1) fail(ErrorCode::timeout, "rank 1 never came");
    if (mode == "stay_out" && worker.rank == 1) stay_out();
    if (mode == "die_first" && worker.rank == 1) std::raise(SIGKILL);
    const comm::World world = comm::join_world(worker);
    HostMemory host;
    if (mode == "once") sum_once(*world.communicator);
    if (mode == "forever") sum_forever(*world.communicator, host, small);
    if (mode == "forever_large") sum_forever(*world.communicator, host, large);
    if (mode == "forever_unstaged") {
      sum_forever(*world.communicator, world.communicator->memory(), small);
    }
    if (mode == "die") die(*world.control);
    if (mode == "fail") fail_as_rank_one(*world.control);
    if (mode == "where") tell_rendezvous(world.worker);
    return status::done;
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return exit_status(error.code());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int status = run(argc > 1 ? argv[1] : "");
  comm::report_failure_to_mpirun(status);
  return status;
}
