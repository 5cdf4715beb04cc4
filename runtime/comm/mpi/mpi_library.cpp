#include "runtime/comm/mpi/mpi_library.h"

#include <array>
#include <exception>
#include <optional>

#include <sched.h>
#include <time.h>

#include "runtime/base/deadline.h"
#include "runtime/base/error.h"
#include "runtime/base/log.h"
#include "runtime/os/plug_in.h"

namespace dstrain::comm {
namespace {

constexpr const char* start_symbol = "dstrain_mpi_start_2";

/// Polls of a waiting rank before it sleeps between them: about 100 us.
constexpr int eager_looks = 200;
constexpr long sleep_ns = 20'000;

/// The plug-in for an MPI library, and names for messages.
struct Library {
  /// Opened globally, because OpenMPI's own plug-ins look for its symbols there.
  PlugIn plug_in;
  const char* build_package;
  const char* packages;  ///< the packages to install on every node
  const char* remedy;    ///< remedy if ranks do not find each other
};

const Library& library_of(MpiKind kind) {
  static constexpr Library openmpi{{"libdstrain_mpi_openmpi.so", PlugInScope::global},
                                   "libopenmpi-dev",
                                   "openmpi-bin",
                                   "start them with OpenMPI's own mpirun (mpirun.openmpi), or with "
                                   "srun --mpi=pmix (srun --mpi=list says whether SLURM has it)"};
  static constexpr Library mpich{{"libdstrain_mpi_mpich.so", PlugInScope::global},
                                 "libmpich-dev",
                                 "mpich",
                                 "start them with MPICH's own mpirun (mpirun.mpich), or with srun "
                                 "--mpi=pmi2"};
  return kind == MpiKind::mpich ? mpich : openmpi;
}

/// Returns the function of the plug-in, which stays open: MPI leaves exit handlers that run its
/// code.
MpiThread::StartFunction start_function(MpiKind kind) {
  if (kind == MpiKind::none) {
    fail(ErrorCode::config,
         "neither mpirun nor srun --mpi has started this rank, so that MPI cannot join it to the "
         "others: start all ranks with one mpirun, or set DSTRAIN_COMM=tcp");
  }
  const Library& library = library_of(kind);
  const Result<void*> opened = open_plug_in(library.plug_in);
  if (!opened.ok()) {
    fail(ErrorCode::config,
         "{} has started this rank, and {}, through which it is joined to the others, cannot be "
         "loaded: {}: it is built when {} is installed and needs {} on every node; with "
         "MASTER_ADDR, "
         "MASTER_PORT, DSTRAIN_TOKEN and DSTRAIN_COMM=tcp given to all ranks it is not needed",
         name_of(kind), library.plug_in.file, opened.error(), library.build_package,
         library.packages);
  }
  return reinterpret_cast<MpiThread::StartFunction>(
      plug_in_symbol(library.plug_in, opened.value(), start_symbol));
}

}  // namespace

const char* mpi_plugin_name(MpiKind kind) {
  return library_of(kind).plug_in.file;
}

void rest_between_looks(int looks) {
  if (looks < eager_looks) {
    ::sched_yield();
  } else {
    const timespec time{0, sleep_ns};
    ::nanosleep(&time, nullptr);
  }
}

MpiLibrary::MpiLibrary(const MpiStart& start) : start_(start), thread_(start_function(start.kind)) {
  const std::optional<int> code = thread_.wait_until_entered(start.timeout_seconds);
  if (!code) {
    fail(ErrorCode::timeout,
         "rendezvous timed out after {:g} s in {}: not all of its ranks came; "
         "see that all are started and run the same program, or raise --timeout",
         start.timeout_seconds, name_of(start.kind));
  }
  if (*code != 0) fail(ErrorCode::comm, "{} does not start: code {}", name_of(start.kind), *code);
  if (start.size == 0 || start.size == api().size) return;
  fail(ErrorCode::config, "the starter says that it has started {} ranks, and {} ({}) finds {}: {}",
       start.size, name_of(start.kind), mpi_plugin_name(start.kind), api().size,
       library_of(start.kind).remedy);
}

/// MPI itself would wait forever for a rank that has failed.
MpiLibrary::~MpiLibrary() {
  if (std::uncaught_exceptions() > 0) return;
  try {
    complete("leaving", [&](void** request) { return api().barrier(request); });
    thread_.leave();
  } catch (const std::exception& error) {
    log_warning(fmt::format("{}: a rank has failed", error.what()));
  }
}

void MpiLibrary::check(int code, const char* attempted) const {
  if (code == 0) return;
  std::array<char, 512> text{};
  api().describe(code, text.data(), static_cast<std::int32_t>(text.size()));
  fail(ErrorCode::comm, "MPI: {}: {}", attempted, text.data());
}

/// Starts an operation by `call(request)` and waits until it is done.
template <class Call>
void MpiLibrary::complete(const char* what, const Call& call) {
  Deadline deadline = Deadline::after(start_.timeout_seconds);
  void* request = nullptr;
  {
    const std::lock_guard lock(mutex_);
    check(call(&request), what);
  }
  for (int looks = 0;; ++looks) {
    std::int32_t done = 0;
    {
      const std::lock_guard lock(mutex_);
      check(api().test(&request, &done), what);
    }
    if (done != 0) return;
    if (deadline.passed()) {
      fail(ErrorCode::timeout, "timed out after {:g} s in {}, {}: not all ranks came",
           start_.timeout_seconds, name_of(start_.kind), what);
    }
    deadline.slice(0, [&] { rest_between_looks(looks); });
  }
}

std::string MpiLibrary::broadcast(std::string text) {
  const char* const what = "broadcasting";
  auto size = static_cast<std::int32_t>(text.size());
  complete(what, [&](void** request) { return api().broadcast(&size, sizeof(size), request); });
  text.resize(static_cast<std::size_t>(size));
  complete(what, [&](void** request) { return api().broadcast(text.data(), size, request); });
  return text;
}

void MpiLibrary::gather_bytes(const void* own, std::int32_t bytes, void* all) {
  complete("gathering", [&](void** request) { return api().gather(own, bytes, all, request); });
}

}  // namespace dstrain::comm
