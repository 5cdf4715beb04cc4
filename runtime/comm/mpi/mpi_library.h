#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/comm/mpi/mpi_api.h"
#include "runtime/comm/mpi/mpi_thread.h"
#include "runtime/rank/mpi_kind.h"

namespace dstrain::comm {

/// Settings for entering MPI.
struct MpiStart {
  MpiKind kind = MpiKind::none;  ///< the MPI whose starter started the process
  int size = 0;  ///< number of ranks that the starter says it has started; 0: it does not say
  double timeout_seconds = 600;  ///< for entering, for leaving, and for each exchange in between
};

/// Returns the file name of the plug-in for a library. It is beside the program, or where the
/// loader looks.
const char* mpi_plugin_name(MpiKind kind);

/// MPI in this process, through the plug-in for the library that has started it. There is one MPI
/// per process, entered once: all users share this object, and its lock, because MPI accepts calls
/// from one thread at a time only.
class MpiLibrary {
 public:
  /// Opens the plug-in and enters MPI: waits until all processes of MPI_COMM_WORLD do. Throws
  /// Error{config} if MPI has not started this process, if the plug-in cannot be opened (names the
  /// file and the package), or if the library does not find the ranks that the starter has started;
  /// Error{timeout} if not all enter; Error{comm} if MPI refuses.
  explicit MpiLibrary(const MpiStart& start);
  MpiLibrary(const MpiLibrary&) = delete;
  MpiLibrary& operator=(const MpiLibrary&) = delete;
  MpiLibrary(MpiLibrary&&) = delete;
  MpiLibrary& operator=(MpiLibrary&&) = delete;
  /// Leaves MPI once all ranks do; not during stack unwinding.
  ~MpiLibrary();

  /// Hold `lock()` around each call. check() throws Error{comm} for a code that is not 0.
  [[nodiscard]] const DstrainMpiApi& api() const { return thread_.api(); }
  [[nodiscard]] std::mutex& lock() { return mutex_; }
  void check(int code, const char* attempted) const;

  /// Collectives of all ranks of MPI_COMM_WORLD. Throw Error{timeout} or Error{comm}; MPI cannot be
  /// used afterwards. Returns rank 0's `text` on all ranks.
  std::string broadcast(std::string text);
  /// Returns the values of all ranks, in rank order, on rank 0; nothing on the others.
  template <class Value>
  requires std::has_unique_object_representations_v<Value> std::vector<Value> gather(
      const Value& own) {
    std::vector<Value> all(api().rank == 0 ? static_cast<std::size_t>(api().size) : 0);
    gather_bytes(&own, sizeof(Value), all.data());
    return all;
  }

  /// The number of the next group. Its members agree on one value before they use it.
  std::int64_t next_group = 0;

 private:
  void gather_bytes(const void* own, std::int32_t bytes, void* all);
  template <class Call>
  void complete(const char* what, const Call& call);

  MpiStart start_;
  MpiThread thread_;
  std::mutex mutex_;
};

/// Yields the core, or sleeps some microseconds, between two polls: only calls make MPI progress.
/// `looks`: number of polls so far.
void rest_between_looks(int looks);

}  // namespace dstrain::comm
