#include "zero/parameter_sums.h"

#include <algorithm>

#include "runtime/ops/convert.h"
#include "runtime/ops/fill_zero.h"

namespace dstrain::zero {
namespace {

/// Each once, however many tiles it has; the sums are in this order.
std::vector<std::string> parameter_names(const FlatLayout& layout) {
  std::vector<std::string> names;
  for (const Placement& place : layout.parameters()) names.push_back(place.spec.name);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

TensorView sums_in(const Buffer& memory, Bytes bytes, std::int64_t rows) {
  if (bytes == 0) return {};
  return memory.block().cut(0, DType::i64, {rows, bytes / rows / size_of(DType::i64)});
}

}  // namespace

Bytes ParameterSums::bytes(const FlatLayout& layout, std::int64_t sums) {
  return std::ssize(parameter_names(layout)) * sums * optim::sum_numel * size_of(DType::i64);
}

bool ParameterSums::needs_host(const ShardPlan& plan, DeviceKind device) {
  return !shares_host_memory(device) && std::ranges::any_of(plan.groups, [](const auto& group) {
    return group.states > 0 && group.tier != MemoryTier::device;
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
  const std::vector<std::string> names = parameter_names(shards.layout());
  on_device_ = sums_in(device_memory_, device_memory_.block().bytes(), std::ssize(names));
  on_host_ = sums_in(host_memory_, host_memory_.block().bytes(), std::ssize(names));
  for (const SubGroup& group : shards.plan().groups) spans_.push_back(spans_of(group, names));
}

std::vector<optim::ParameterSpan> ParameterSums::spans_of(
    const SubGroup& group, const std::vector<std::string>& names) const {
  const FlatLayout& layout = shards_.layout();
  const Segment& segment = layout.segment(group.segment);
  const std::int64_t shard = shards_.shards_updates() ? shards_.rank() * segment.shard_numel : 0;
  const std::int64_t begin = shard + group.offset;
  const bool host = group.tier != MemoryTier::device && !on_host_.empty();
  std::vector<optim::ParameterSpan> spans;
  for (const int index : segment.parameters) {
    const Placement& place = layout.parameter(index);
    const std::int64_t first = std::max(begin, place.offset);
    const std::int64_t last = std::min(begin + group.numel, place.offset + place.shape.numel());
    if (first >= last) continue;
    const auto row = std::ranges::lower_bound(names, place.spec.name) - names.begin();
    spans.push_back(
        {.offset = first - begin,
         .numel = last - first,
         .sums = (host ? on_host_ : on_device_).rows(row, 1).reshaped({sums_, optim::sum_numel})});
  }
  return spans;
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
