#pragma once
#include <string>
#include <vector>

namespace dstrain::test {

/// What ptxas made of a kernel.
struct KernelCode {
  std::string name;  ///< as C++ writes it
  int threads = 0;   ///< of a block, at most
  int registers = 0;
  int stack_bytes = 0;  ///< of a thread; what spills lies there

  /// How many warps a multiprocessor of compute capability 9.0 holds, of 64, where a block shares
  /// so many bytes (CUDA C++ Programming Guide, technical specifications per compute capability).
  [[nodiscard]] int warps_at_once(int shared_bytes) const;
};

/// The kernels in a library, of each GPU architecture that it has code for. nvcc puts them there as
/// ELF files of NVIDIA's machine type (EM_CUDA); what it tells of them stands in their sections
/// .nv.info, in the form that NVIDIA's cuobjdump reads. Throws std::runtime_error for a library
/// without any.
std::vector<KernelCode> kernels_in(const std::string& library);

}  // namespace dstrain::test
