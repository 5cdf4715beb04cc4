
#include "runtime/device/cpu_stream.h"
#include "tests/ops/all_ops.h"
#include "tests/support/catch.h"

#ifdef _OPENMP
#include <omp.h>

namespace dstrain {
namespace {

std::vector<test::TensorBytes> run_all(DType dtype, int threads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  HostMemory memory;
  std::vector<test::TensorBytes> made = test::run_all_ops({dtype, memory, stream, false});
  omp_set_num_threads(before);
  return made;
}

TEST_CASE("Ops: the bits do not depend on the number of threads", "[ops][threads]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::vector<test::TensorBytes> one = run_all(dtype, 1);
  const int threads = GENERATE(2, 3, 20);
  CHECK((run_all(dtype, threads) == one));
}

}  // namespace
}  // namespace dstrain
#endif
