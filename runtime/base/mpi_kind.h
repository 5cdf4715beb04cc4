#pragma once
#include <cstdint>

namespace dstrain {

/// The MPI library whose mpirun, or whose protocol under srun, has started a process.
enum class MpiKind : std::uint8_t { none, openmpi, mpich };

}  // namespace dstrain
