#include "runtime/ops/matmul.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {

MatmulShape check_product(const MatmulArgs& args, StreamView stream) {
  require_workspace(args.workspace, matmul_workspace(args, stream.device().kind));
  return matmul_shape(args);
}

void matmul(const MatmulArgs& args, StreamView stream) {
  check_product(args, stream);
  op_table(stream).matmul(args, stream);
}

}  // namespace dstrain::ops
