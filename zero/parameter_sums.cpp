#include "zero/parameter_sums.h"

#include <algorithm>

#include "runtime/ops/convert.h"
#include "runtime/ops/fill_zero.h"
#include "runtime/ops/update.h"
#include "zero/parameter_spans.h"

namespace dstrain::zero {
namespace {

TensorView sums_in(const Buffer& memory, Bytes bytes, std::int64_t rows) {
  if (bytes == 0) return {};
  return memory.block().cut(0, DType::i64, {rows, bytes / rows / size_of(DType::i64)});
}

}  // namespace

Bytes ParameterSums::bytes(const FlatLayout& layout, std::int64_t sums) {
  return std::ssize(parameter_names(layout)) * sums * ops::norm_sum_numel * size_of(DType::i64);
}

bool ParameterSums::needs_host(const ShardPlan& plan, DeviceKind device) {
  return !shares_host_memory(device) &&
         std::ranges::any_of(plan.sub_groups, [](const auto& sub_group) {
           return sub_group.states > 0 && sub_group.tier != MemoryTier::device;
         });
}

ParameterSums::ParameterSums(RankShards& shards,
                             std::int64_t sums,
                             Communication communication,
                             Memory memory,
                             StreamView stream)
    : shards_(shards),
      sums_(sums),
      communication_(communication),
      device_memory_(bytes(shards.layout(), sums), memory.device, stream),
      host_memory_(
          needs_host(shards.plan(), stream.device().kind) ? bytes(shards.layout(), sums) : 0,
          memory.host,
          stream) {
  const auto parameters = std::ssize(parameter_names(shards.layout()));
  on_device_ = sums_in(device_memory_, device_memory_.block().bytes(), parameters);
  on_host_ = sums_in(host_memory_, host_memory_.block().bytes(), parameters);
}

TensorView ParameterSums::of(int parameter_number, const SubGroup& sub_group) const {
  const bool host = sub_group.tier != MemoryTier::device && !on_host_.empty();
  return (host ? on_host_ : on_device_)
      .rows(parameter_number, 1)
      .reshaped({sums_, ops::norm_sum_numel});
}

void ParameterSums::clear(StreamView stream) const {
  ops::fill_zero(on_device_, stream);
  if (!on_host_.empty()) ops::fill_zero(on_host_, shards_.stream_of(Device{}));
}

void ParameterSums::host_is_done(StreamView stream) const {
  if (!on_host_.empty()) ops::convert(on_host_, on_device_, stream);
}

void ParameterSums::add_up(StreamView stream) const {
  if (shards_.shards_updates()) {
    communication_.follow(stream);
    communication_.communicator().all_reduce(on_device_, communication_.stream());
    communication_.join(stream);
  }
  if (on_host_.empty()) return;
  ops::convert(on_device_, on_host_, stream);
  stream.synchronize();
}

}  // namespace dstrain::zero
