#include "runtime/ops/op_table.h"

#include "runtime/base/error.h"

namespace dstrain::ops {

const OpTable& op_table(StreamView stream) {
  DSTRAIN_CHECK(stream.device().kind == DeviceKind::cpu, "no ops for this kind of device");
  return cpu_op_table();
}

}  // namespace dstrain::ops
