#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace dstrain::test {

/// What ptxas made of a kernel.
struct KernelCode {
  std::string name;  ///< as C++ writes it
  int threads = 0;   ///< of a block, at most
  int registers = 0;
  int stack_bytes = 0;  ///< of a thread; what spills lies there
  /// That a multiprocessor holds, of 64, as far as registers go.
  [[nodiscard]] int warps_at_once() const;
};

/// The kernels in a library, of each GPU architecture that it has code for. nvcc puts them there as
/// ELF files of NVIDIA's machine type (EM_CUDA); what it tells of them stands in their sections
/// .nv.info, in the form that NVIDIA's cuobjdump reads. Throws std::runtime_error for a library
/// without any.
std::vector<KernelCode> kernels_in(const std::filesystem::path& library);

}  // namespace dstrain::test
