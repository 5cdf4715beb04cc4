#include "zero/state_record.h"

#include "runtime/tensor/dtype.h"

namespace dstrain::zero {
namespace {

Bytes pieces(std::int64_t floats) {
  return round_up(floats * size_of(DType::f32), offload::io_alignment);
}

HostView floats(std::span<std::byte> record, Bytes begin, std::int64_t numel) {
  return {record.data() + begin, DType::f32, {numel}};
}

}  // namespace

StateRecord::StateRecord(const SubGroup& group)
    : numel_(group.numel),
      states_(group.states),
      middle_(group.gradients ? pieces(group.numel) : 0),
      end_(middle_ + pieces(group.states * group.numel)) {}

offload::FileRange StateRecord::range(RecordParts parts) const {
  if (!parts.states) return {0, parts.gradients ? middle_ : 0};
  return {parts.gradients ? 0 : middle_, end_};
}

TensorView StateRecord::gradients(std::span<std::byte> record) const {
  return middle_ > 0 ? floats(record, 0, numel_) : HostView();
}

void StateRecord::cut_states(std::span<std::byte> record, std::vector<TensorView>& states) const {
  states.clear();
  for (std::int64_t state = 0; state < states_; ++state) {
    states.push_back(floats(record, middle_ + state * numel_ * size_of(DType::f32), numel_));
  }
}

}  // namespace dstrain::zero
