#include "runtime/ops/square_sum.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void add_squares(const AddSquaresArgs& args, StreamView stream) {
  for (const TensorView& values : args.values) {
    require_tensor(values, element_dtype(values, "values"), values.shape(), "values");
  }
  require_tensor(args.sum, DType::i64, {ExactSum::numel}, "sum");
  if (!args.values.empty()) op_table(stream).add_squares(args, stream);
}

}  // namespace dstrain::ops
