#pragma once
#include <cstdint>
#include <mutex>

#include "runtime/comm/mpi/mpi_api.h"

namespace dstrain::comm {

/// The file of the plug-in: beside the program, else wherever the loader looks.
inline constexpr const char* mpi_plugin_name = "libdstrain_mpi.so";

/// MPI in this process, through the plug-in. MPI is one per process: transports share this one, and
/// its lock, because MPI takes calls from one thread at a time only.
class MpiLibrary {
 public:
  /// Opens the plug-in and enters MPI: waits until all processes of MPI_COMM_WORLD do. Throws
  /// Error{config} that names the file and the package when it cannot be opened, Error{comm} when
  /// MPI refuses.
  MpiLibrary();
  MpiLibrary(const MpiLibrary&) = delete;
  MpiLibrary& operator=(const MpiLibrary&) = delete;
  MpiLibrary(MpiLibrary&&) = delete;
  MpiLibrary& operator=(MpiLibrary&&) = delete;
  /// Leaves MPI, which waits for the other processes to do so; not while an exception passes.
  ~MpiLibrary();

  /// Hold `lock()` around each call. Throws Error{comm} for a code that is not 0.
  [[nodiscard]] const DstrainMpiApi& api() const { return api_; }
  [[nodiscard]] std::mutex& lock() { return mutex_; }
  void check(int code, const char* attempted) const;

  /// The number of the next group, which its members bring to one value before they use it.
  std::int64_t next_group = 0;

 private:
  DstrainMpiApi api_{};
  std::mutex mutex_;
};

}  // namespace dstrain::comm
