#pragma once
#include <string_view>

namespace dstrain {

/// The MPI library whose starter (its own mpirun, or srun with its protocol) has started a process.
/// The other library would run each such process as a single one.
enum class MpiKind { none, openmpi, mpich };

/// Returns the name that its users write.
constexpr std::string_view name_of(MpiKind kind) {
  switch (kind) {
    case MpiKind::none:
      return "no MPI";
    case MpiKind::openmpi:
      return "OpenMPI";
    case MpiKind::mpich:
      return "MPICH";
  }
  return "";
}

}  // namespace dstrain
