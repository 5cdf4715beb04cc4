#include "runtime/ops/cuda/launch.h"
#include "runtime/ops/cuda/loss_sum.h"
#include "runtime/ops/elements.h"

namespace dstrain::ops::gpu {
namespace {

struct AddLosses {
  const float* losses;
  std::int64_t rows;
  double* sum;
};

constexpr int loss_threads = 256;

/// One block; a single thread adds, in the order of the rows.
DSTRAIN_KERNEL(loss_threads)
add_losses_kernel(DSTRAIN_ARGUMENT AddLosses args) {
  struct Shared {
    float losses[16 * loss_threads];
  };
  auto& s = shared<Shared>();
  constexpr std::int64_t at_once = 16 * loss_threads;
  double sum = *args.sum;
  for (std::int64_t begin = 0; begin < args.rows; begin += at_once) {
    const std::int64_t count = at_once < args.rows - begin ? at_once : args.rows - begin;
    for (std::int64_t i = thread(); i < count; i += loss_threads) {
      s.losses[i] = args.losses[begin + i];
    }
    sync();
    if (thread() == 0) {
      for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(s.losses[i]);
    }
    sync();
  }
  if (thread() == 0) *args.sum = sum;
}

}  // namespace

void add_losses(const char* op,
                const TensorView& losses,
                const TensorView& sum,
                StreamView stream) {
  launch(op, add_losses_kernel,
         {.threads = loss_threads, .shared_bytes = 16 * loss_threads * sizeof(float)},
         AddLosses{floats(losses), losses.numel(), elements<double>(sum)}, stream);
}

}  // namespace dstrain::ops::gpu
