#include "zero/disk_shards.h"

#include <utility>

#include "runtime/ops/add.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/square_sum.h"

namespace dstrain::zero {
namespace {

using offload::FileRange;
using offload::RecordSwap;

Bytes shard_bytes(const FlatLayout& layout, SegmentId segment) {
  const Segment& of = layout.segment(segment);
  return round_up(of.shard_numel * size_of(of.dtype), offload::io_alignment);
}

/// A record for each segment.
std::vector<Bytes> parameter_records(const FlatLayout& layout, const ShardPlan& plan) {
  std::vector<Bytes> sizes;
  for (const SegmentId segment : plan.segments.ids()) {
    const bool here = plan.segments[segment].parameters == MemoryTier::nvme;
    sizes.push_back(here ? shard_bytes(layout, segment) : 0);
  }
  return sizes;
}

/// A record for each sub-group, then the second ones.
std::vector<Bytes> state_records(const ShardPlan& plan, EarlyUpdate early) {
  std::vector<Bytes> sizes;
  for (int copy = 0; copy < records_per_sub_group(early); ++copy) {
    for (const SubGroup& sub_group : plan.sub_groups) {
      sizes.push_back(sub_group.tier == MemoryTier::nvme ? StateRecord(sub_group).bytes() : 0);
    }
  }
  return sizes;
}

}  // namespace

CategoryBytes DiskShards::file_bytes(const FlatLayout& layout,
                                     const ShardPlan& plan,
                                     const Offload& offload) {
  Bytes gradients = 0;
  for (const SubGroup& sub_group : plan.sub_groups)
    gradients += StateRecord(sub_group).gradient_bytes();
  gradients *= records_per_sub_group(offload.early);
  CategoryBytes bytes{};
  of(bytes, MemoryCategory::parameters) = RecordSwap::file_bytes(parameter_records(layout, plan));
  of(bytes, MemoryCategory::gradients) = gradients;
  of(bytes, MemoryCategory::optimizer) =
      RecordSwap::file_bytes(state_records(plan, offload.early)) - gradients;
  return bytes;
}

Bytes DiskShards::buffer_bytes(const FlatLayout& layout,
                               const ShardPlan& plan,
                               const Offload& offload) {
  return RecordSwap::buffer_bytes(parameter_records(layout, plan), offload.parameter_buffers) +
         RecordSwap::buffer_bytes(state_records(plan, offload.early), offload.optimizer_buffers);
}

DiskShards::DiskShards(const FlatLayout& layout,
                       const ShardPlan& plan,
                       const Offload& offload,
                       Folders folders,
                       StreamView stream)
    : layout_(layout),
      read_ahead_(offload.read_ahead && offload.optimizer_buffers > 1),
      by_number_(plan.sub_groups.size()),
      by_arrival_(plan.sub_groups.size()) {
  const CategoryBytes bytes = file_bytes(layout, plan, offload);
  const auto count = [&bytes](const SwapFolder& folder, MemoryCategory category) {
    folder.ledger.add(category, of(bytes, category));
  };
  if (plan.parameters_in(MemoryTier::nvme)) {
    DSTRAIN_CHECK(folders.parameters != nullptr, "no disk for parameters");
    const SwapFolder& folder = *folders.parameters;
    parameters_.emplace(folder.io, folder.directory, parameter_records(layout, plan),
                        RecordSwap::Options{offload.parameter_buffers, true}, folder.buffers,
                        stream);
    count(folder, MemoryCategory::parameters);
  }
  // As state_records() orders them.
  const int second = offload.early == EarlyUpdate::revocable ? plan.sub_groups.ids().size() : 0;
  for (const SubGroupId id : plan.sub_groups.ids()) {
    const SubGroup& sub_group = plan.sub_groups[id];
    records_.push_back({StateRecord(sub_group), to_int(id), to_int(id) + second});
    if (sub_group.tier == MemoryTier::nvme) by_number_.note(id);
  }
  if (!plan.states_in(MemoryTier::nvme)) return;
  DSTRAIN_CHECK(folders.optimizer != nullptr, "no disk for the optimizer's states");
  const SwapFolder& folder = *folders.optimizer;
  states_.emplace(folder.io, folder.directory, state_records(plan, offload.early),
                  RecordSwap::Options{offload.optimizer_buffers, offload.write_behind},
                  folder.buffers, stream);
  count(folder, MemoryCategory::gradients);
  count(folder, MemoryCategory::optimizer);
}

FileRange DiskShards::whole_shard(SegmentId segment) const {
  return {0, shard_bytes(layout_, segment)};
}

HostView DiskShards::shard_view(SegmentId segment, std::span<std::byte> memory) const {
  const Segment& of = layout_.segment(segment);
  return {memory.data(), of.dtype, {of.shard_numel}};
}

void DiskShards::expect_parameters(SegmentId segment) {
  parameters_->expect(record_of(segment), whole_shard(segment));
}

HostView DiskShards::take_parameters(SegmentId segment) {
  return shard_view(segment, parameters_->take(record_of(segment), whole_shard(segment)));
}

HostView DiskShards::replace_parameters(SegmentId segment) {
  return shard_view(segment, parameters_->take(record_of(segment), {}));
}

void DiskShards::release_parameters(SegmentId segment, bool changed) {
  parameters_->release(record_of(segment), changed ? whole_shard(segment) : FileRange{});
}

/// The buffer of a sub-group, with `contents` of it read, while the next ones are being read.
std::span<std::byte> DiskShards::fetch(SubGroupId sub_group,
                                       RecordContents contents,
                                       const UseOrder& order) {
  const SubGroupRecords& records = records_[sub_group];
  const std::span<std::byte> memory = states_->take(records.record, records.layout.range(contents));
  const std::optional<SubGroupId> next = read_ahead_ ? order.next(sub_group) : std::nullopt;
  if (next) states_->expect(records_[*next].record, records_[*next].layout.range(contents));
  states_->wait(records.record);
  // The next may be a small one, that is read long before this one is updated.
  if (const std::optional<SubGroupId> second = next ? order.next(*next) : std::nullopt) {
    states_->expect_if_free(records_[*second].record, records_[*second].layout.range(contents));
  }
  return memory;
}

DiskShards::LoadedSubGroup DiskShards::view(const SubGroupRecords& records,
                                            std::span<std::byte> record,
                                            TensorView gradients) {
  records.layout.cut_states(record, views_);
  return {views_, gradients};
}

DiskShards::LoadedSubGroup DiskShards::acquire(SubGroupId sub_group, LeaseUse use) {
  const SubGroupRecords& records = records_[sub_group];
  if (records.early) {  // needed only to repeat the update: the gradients went with the new states
    DSTRAIN_CHECK(use == LeaseUse::update && records.revocable(), "sub-group {} was updated early",
                  to_int(sub_group));
    const std::span<std::byte> put =
        states_->acquire(records.new_record, records.layout.range({.gradients = true}));
    const std::span<std::byte> old = fetch(sub_group, {.states = true}, by_number_);
    return view(records, old, records.layout.gradients(put));
  }
  const bool steps = use == LeaseUse::measure || use == LeaseUse::update;
  const RecordContents contents{.gradients = steps, .states = use != LeaseUse::replace};
  const std::span<std::byte> record = fetch(sub_group, contents, by_number_);
  return view(records, record, records.layout.gradients(record));
}

void DiskShards::release(SubGroupId sub_group, LeaseUse use) {
  SubGroupRecords& records = records_[sub_group];
  states_->release(records.record, records.layout.range({.states = use != LeaseUse::read}));
  if (std::exchange(records.early, false)) states_->release(records.new_record, {});
}

void DiskShards::begin(engine::MicroStep micro_step, bool early) {
  micro_step_ = micro_step;
  early_ = early;
  by_arrival_.restart();
  if (micro_step.first()) squares_ = {};
  if (!updates_early() || !read_ahead_ || !by_arrival_.first()) return;
  const SubGroupRecords& records = records_[*by_arrival_.first()];
  states_->expect(records.record,
                  records.layout.range({.gradients = !micro_step.first(), .states = true}));
}

void DiskShards::add(SubGroupId sub_group, TensorView gradients, StreamView stream) {
  by_arrival_.note(sub_group);
  const SubGroupRecords& records = records_[sub_group];
  const FileRange whole = records.layout.range({.gradients = true});
  const std::span<std::byte> memory =
      states_->acquire(records.record, micro_step_.first() ? FileRange{} : whole);
  const TensorView sum = records.layout.gradients(memory);
  DSTRAIN_CHECK(!sum.empty(), "the gradients of sub-group {} have no place", to_int(sub_group));
  micro_step_.first() ? ops::convert(gradients, sum, stream) : ops::add(gradients, sum, stream);
  if (micro_step_.last()) ops::add_squares({{sum}, ops::view_of(squares_)}, stream);
  states_->release(records.record, whole);
}

DiskShards::LoadedSubGroup DiskShards::begin_early(SubGroupId sub_group,
                                                   TensorView gradients,
                                                   StreamView stream) {
  by_arrival_.note(sub_group);
  const SubGroupRecords& records = records_[sub_group];
  const std::span<std::byte> record =
      fetch(sub_group, {.gradients = !micro_step_.first(), .states = true}, by_arrival_);
  TensorView sum = records.layout.gradients(record);
  if (!micro_step_.first()) {
    ops::add(gradients, sum, stream);
  } else if (records.revocable() || sum.dtype() != gradients.dtype()) {
    ops::convert(gradients, sum, stream);
  } else {
    sum = gradients;
  }
  ops::add_squares({{sum}, ops::view_of(squares_)}, stream);
  return view(records, record, sum);
}

void DiskShards::end_early(SubGroupId sub_group) {
  SubGroupRecords& records = records_[sub_group];
  records.early = true;
  states_->release(records.record,
                   records.layout.range({.gradients = records.revocable(), .states = true}),
                   records.new_record);
}

void DiskShards::accept() {
  for (SubGroupRecords& records : records_) {
    if (std::exchange(records.early, false)) std::swap(records.record, records.new_record);
  }
}

}  // namespace dstrain::zero
