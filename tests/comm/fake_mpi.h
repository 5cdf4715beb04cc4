#pragma once
#include <atomic>

namespace dstrain::test {

/// MPI of two ranks, of which this process is the first and a test says what the other one does. It
/// lies in a plug-in that takes the place of OpenMPI's.
struct FakeMpi {
  std::atomic<bool> other_leaves{false};  ///< it has come to the barrier
  std::atomic<bool> at_barrier{false};    ///< this process has
  std::atomic<bool> finished{false};      ///< it has left MPI
  std::atomic<bool> left_alone{false};    ///< and the other one had not come
};

/// The plug-in's symbol that returns its FakeMpi.
constexpr const char* fake_mpi_symbol = "dstrain_fake_mpi";

}  // namespace dstrain::test
