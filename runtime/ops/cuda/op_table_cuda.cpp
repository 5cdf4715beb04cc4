#include "runtime/device/cuda/nvtx.h"
#include "runtime/ops/cuda/cuda_ops.h"

namespace dstrain::ops {
namespace {

/// An entry wrapped in a profiler range with the op's name.
template <auto entry, const char* name>
struct Shown;
template <class... Args, void (*entry)(Args...), const char* name>
struct Shown<entry, name> {
  static void call(Args... args) {
    const struct Range {
      Range() { cuda::nvtx_ranges()->push(name); }
      Range(const Range&) = delete;
      Range& operator=(const Range&) = delete;
      Range(Range&&) = delete;
      Range& operator=(Range&&) = delete;
      ~Range() { cuda::nvtx_ranges()->pop(); }
    } range;
    entry(args...);
  }
};

#define DSTRAIN_OP_NAME(name, ...) constexpr char name##_name[] = #name;
DSTRAIN_FOR_EACH_OP(DSTRAIN_OP_NAME)
#undef DSTRAIN_OP_NAME

}  // namespace

const OpTable& cuda_op_table() {
#define DSTRAIN_CUDA_ENTRY(name, ...) .name = gpu::name,
  static constexpr OpTable table{DSTRAIN_FOR_EACH_OP(DSTRAIN_CUDA_ENTRY)};
#undef DSTRAIN_CUDA_ENTRY
#define DSTRAIN_CUDA_ENTRY(name, ...) .name = Shown<gpu::name, name##_name>::call,
  static constexpr OpTable shown{DSTRAIN_FOR_EACH_OP(DSTRAIN_CUDA_ENTRY)};
#undef DSTRAIN_CUDA_ENTRY
  return cuda::nvtx_ranges() == nullptr ? table : shown;
}

}  // namespace dstrain::ops
