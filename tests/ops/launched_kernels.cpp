#include "tests/ops/launched_kernels.h"

#include <algorithm>
#include <fstream>

#include "tests/ops/all_ops.h"
#include "tests/ops/elf_file.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_gpu.h"
#include "tests/support/variable.h"

namespace dstrain::test {
namespace {

/// The names of what lies where in the library.
std::map<std::uint64_t, std::string> names_in(const std::string& library) {
  const std::string bytes = bytes_of(library);
  std::map<std::uint64_t, std::string> names;
  for (const ElfFile::Symbol& symbol : ElfFile(bytes).symbols()) {
    names[symbol.value] = demangled(symbol.name);
  }
  return names;
}

void run_everything() {
  const std::unique_ptr<Backend> gpu = open_test_gpu();
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const std::int64_t head_size : {20, 100, 160}) {
      run_all_ops({.dtype = dtype,
                   .memory = gpu->memory(),
                   .stream = *stream,
                   .products = head_size == 20,
                   .head_size = head_size});
    }
  }
}

}  // namespace

std::map<std::string, int> launched_kernels() {
  const TempDir folder;
  const std::string log = (folder.path() / "launches").string();
  const Variable logged("DSTRAIN_STAND_IN_LAUNCHES", log);
  run_everything();
  const std::map<std::uint64_t, std::string> names =
      names_in(DSTRAIN_STAND_IN "/libdstrain_cuda.so");
  std::map<std::string, int> kernels;
  std::ifstream lines(log);
  std::uint64_t place = 0;
  for (int shared_bytes = 0; lines >> place >> shared_bytes;) {
    int& most = kernels[names.at(place)];
    most = std::max(most, shared_bytes);
  }
  return kernels;
}

}  // namespace dstrain::test
