#include "runtime/ops/op_table.h"

#include <array>

#include "runtime/base/error.h"

namespace dstrain::ops {
namespace {

/// By kind of device; null: not registered.
std::array<const OpTable*, device_kinds>& tables() {
  static std::array<const OpTable*, device_kinds> all{&cpu_op_table()};
  return all;
}

}  // namespace

const OpTable& op_table(StreamView stream) {
  const OpTable* const table = tables().at(static_cast<std::size_t>(stream.device().kind));
  DSTRAIN_CHECK(table != nullptr, "no ops for this kind of device");
  return *table;
}

void set_op_table(DeviceKind kind, const OpTable& table) {
  tables().at(static_cast<std::size_t>(kind)) = &table;
}

}  // namespace dstrain::ops
