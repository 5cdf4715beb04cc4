#pragma once
#include <string_view>

namespace dstrain {

/// The MPI library whose starter (its own mpirun, or srun in its language) has started a process:
/// the other one would take each such process for the only one.
enum class MpiKind { none, openmpi, mpich };

/// As its users write it.
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
