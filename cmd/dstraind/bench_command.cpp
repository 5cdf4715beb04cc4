#include <fmt/core.h>

#include "cmd/bench/adam_bench.h"
#include "cmd/bench/checkpoint_bench.h"
#include "cmd/bench/comm_bench.h"
#include "cmd/bench/gemm_bench.h"
#include "cmd/bench/io_bench.h"
#include "cmd/dstraind/commands.h"
#include "runtime/numeric/parallel_for.h"

namespace dstrain::cmd {

int bench_command(std::span<const std::string> arguments) {
  const WorkerEnv worker = read_worker_env();
  prepare_compute_threads(core_share(worker));
  if (worker.device == DeviceChoice::cuda) {
    fail(ErrorCode::usage, "{}=cuda: bench measures CPUs; use cpu", env::device);
  }
  const bench::Options options = bench::parse_options(arguments, worker.world_size);
  switch (options.what) {
    case bench::Options::What::gemm:
      fmt::print("{}", bench::run_gemm(options));
      break;
    case bench::Options::What::comm:
      fmt::print("{}", bench::run_comm(options, worker));
      break;
    case bench::Options::What::adam:
      fmt::print("{}", bench::run_adam(options));
      break;
    case bench::Options::What::checkpoint:
      fmt::print("{}", bench::run_checkpoint(options));
      break;
    case bench::Options::What::io:
      fmt::print("{}", bench::run_io(options, worker.io));
      break;
  }
  return status::done;
}

}  // namespace dstrain::cmd
