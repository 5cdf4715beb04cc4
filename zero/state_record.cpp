#include "zero/state_record.h"

#include "runtime/tensor/dtype.h"

namespace dstrain::zero {
namespace {

Bytes pieces(Bytes bytes) {
  return round_up(bytes, offload::io_alignment);
}

}  // namespace

StateRecord::StateRecord(const SubGroup& sub_group)
    : sub_group_(sub_group),
      middle_(sub_group.gradients ? pieces(sub_group.numel * size_of(sub_group.precision.gradients))
                                  : 0),
      end_(middle_ + pieces(sub_group.numel * sub_group.state_bytes())) {}

offload::FileRange StateRecord::range(RecordContents contents) const {
  if (!contents.states) return {0, contents.gradients ? middle_ : 0};
  return {contents.gradients ? 0 : middle_, end_};
}

TensorView StateRecord::gradients(std::span<std::byte> record) const {
  if (middle_ == 0) return {};
  return HostView(record.data(), sub_group_.precision.gradients, {sub_group_.numel});
}

void StateRecord::cut_states(std::span<std::byte> record, std::vector<TensorView>& states) const {
  states = sub_group_.cut_states(HostView(record.data() + middle_, DType::u8, {end_ - middle_}));
}

}  // namespace dstrain::zero
