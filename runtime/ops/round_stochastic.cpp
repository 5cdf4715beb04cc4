#include "runtime/ops/round_stochastic.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void round_stochastic(const RoundStochasticArgs& args, StreamView stream) {
  const Shape shape{args.source.numel()};
  require_f32(args.source, shape, "source");
  require_half(args.target, shape, "target");
  require_tensor(args.key, DType::i64, {1}, "key");
  op_table(stream).round_stochastic(args, stream);
}

}  // namespace dstrain::ops
