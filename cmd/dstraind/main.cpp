// The training daemon: one process per rank, started by dstrain, srun or by hand.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "cmd/dstraind/commands.h"
#include "launcher/process/signals.h"
#include "runtime/base/exception_text.h"
#include "runtime/base/log.h"
#include "runtime/comm/mpi/mpi_starter.h"
#include "runtime/os/mapped_file.h"
#include "runtime/rank/worker_env.h"
#include "runtime/session/version.h"

namespace {

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    dstrain::fail(
        dstrain::ErrorCode::usage,
        "usage: dstraind train|generate|chat|evaluate|bench ...; started for you by dstrain");
  }
  dstrain::session::require_core("dstraind", DSTRAIN_VERSION);
  // With a value it is LLaVA's, which names a chat template.
  if (arguments.back() == "--version") {
    fmt::print("dstraind {}\n", DSTRAIN_VERSION);
    return dstrain::status::done;
  }
  const std::span rest = std::span(arguments).subspan(1);
  dstrain::session::require_launcher("dstraind", DSTRAIN_VERSION);
  if (arguments[0] == "train") return dstrain::cmd::train_command(rest);
  if (arguments[0] == "generate") return dstrain::cmd::generate_command(rest);
  if (arguments[0] == "chat") return dstrain::cmd::chat_command(rest);
  if (arguments[0] == "evaluate") return dstrain::cmd::evaluate_command(rest);
  if (arguments[0] == "bench") return dstrain::cmd::bench_command(rest);
  if (arguments[0] == "--help") {
    fmt::print(
        "dstraind train|generate|chat|evaluate|bench OPTIONS: one rank; see dstrain --help\n");
    return dstrain::status::done;
  }
  dstrain::fail(dstrain::ErrorCode::usage,
                "dstraind: \"{}\" is not a command: train, generate, chat, evaluate or bench",
                arguments[0]);
}

int run_to_status(const std::vector<std::string>& arguments) {
  try {
    const char* const level = std::getenv(dstrain::env::log_level);
    dstrain::start_log(level != nullptr ? level : "info");
    dstrain::log_uncaught_exceptions();
    dstrain::name_shortened_files();
    const int status = run(arguments);
    if (std::fflush(stdout) != 0) dstrain::fail_errno(errno, "write to stdout");
    return status;
  } catch (const dstrain::Error& error) {
    dstrain::log_error(error.what());
    return dstrain::exit_status(error.code());
  } catch (const std::exception& error) {
    dstrain::log_error(dstrain::exception_text(error));
  }
  return dstrain::status::failed;
}

}  // namespace

int main(int argc, char* argv[]) {
  dstrain::launcher::reset_inherited_signals();  // srun, mpirun or a shell may hand some down
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond RLIMIT_FSIZE fails instead, and says where
  dstrain::comm::end_with_mpirun();
  const int status = run_to_status({argv + 1, argv + argc});
  dstrain::comm::report_failure_to_mpirun(status);
  return status;
}
