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

/// What a process knows of MPI before it enters it.
struct MpiStart {
  MpiKind kind = MpiKind::none;  ///< whose starter has started it
  int size = 0;                  ///< ranks that the starter says it has started; 0: it does not say
  double timeout_seconds = 600;  ///< of entering, of leaving, and of each exchange in between
};

/// The file of the plug-in for a library: beside the program, else wherever the loader looks.
const char* mpi_plugin_name(MpiKind kind);

/// MPI in this process, through the plug-in for the library that has started it. MPI is one per
/// process, entered once: who needs it shares this one, and its lock, because MPI takes calls from
/// one thread at a time only.
class MpiLibrary {
 public:
  /// Opens the plug-in and enters MPI: waits until all processes of MPI_COMM_WORLD do. Throws
  /// Error{config} when MPI has not started this process, when the plug-in cannot be opened (names
  /// the file and the package), or when the library does not find the ranks that the starter has
  /// started; Error{timeout} when not all enter; Error{comm} when MPI refuses.
  explicit MpiLibrary(const MpiStart& start);
  MpiLibrary(const MpiLibrary&) = delete;
  MpiLibrary& operator=(const MpiLibrary&) = delete;
  MpiLibrary(MpiLibrary&&) = delete;
  MpiLibrary& operator=(MpiLibrary&&) = delete;
  /// Leaves MPI once all ranks do; not while an exception passes.
  ~MpiLibrary();

  /// Hold `lock()` around each call. check() throws Error{comm} for a code that is not 0.
  [[nodiscard]] const DstrainMpiApi& api() const { return thread_.api(); }
  [[nodiscard]] std::mutex& lock() { return mutex_; }
  void check(int code, const char* attempted) const;

  /// What all ranks of MPI_COMM_WORLD do together. Throw Error{timeout}, Error{comm}; MPI is of no
  /// use afterwards. Rank 0's `text`, for all:
  std::string broadcast(std::string text);
  /// At rank 0 the values of all ranks, in their order; elsewhere none.
  template <class Value>
  requires std::has_unique_object_representations_v<Value> std::vector<Value> gather(
      const Value& own) {
    std::vector<Value> all(api().rank == 0 ? static_cast<std::size_t>(api().size) : 0);
    gather_bytes(&own, sizeof(Value), all.data());
    return all;
  }

  /// The number of the next group, which its members bring to one value before they use it.
  std::int64_t next_group = 0;

 private:
  void gather_bytes(const void* own, std::int32_t bytes, void* all);
  template <class Call>
  void complete(const char* what, const Call& call);

  MpiStart start_;
  MpiThread thread_;
  std::mutex mutex_;
};

/// Gives the core to others, or sleeps some microseconds, between two looks whether something is
/// done: only calls drive MPI. `looks`: how many there have been.
void rest_between_looks(int looks);

}  // namespace dstrain::comm
