#include "runtime/ops/fill_zero.h"

#include "runtime/ops/op_table.h"

namespace dstrain::ops {

void fill_zero(const TensorView& values, StreamView stream) {
  DSTRAIN_CHECK(values.dense(), "{} has strided rows", to_string(values.shape()));
  op_table(stream).fill_zero(values, stream);
}

}  // namespace dstrain::ops
