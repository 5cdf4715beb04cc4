#include "runtime/ops/cpu_ops.h"

namespace dstrain::ops {

const OpTable& cpu_op_table() {
#define DSTRAIN_CPU_ENTRY(name, ...) .name = cpu::name,
  static constexpr OpTable table{DSTRAIN_FOR_EACH_OP(DSTRAIN_CPU_ENTRY)};
#undef DSTRAIN_CPU_ENTRY
  return table;
}

}  // namespace dstrain::ops
