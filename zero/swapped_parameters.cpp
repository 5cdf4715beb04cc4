#include "zero/swapped_parameters.h"

#include "zero/state_runs.h"

namespace dstrain::zero {
namespace {

Bytes record_bytes(const FlatLayout& layout, const Segment& segment) {
  return round_up(segment.shard_numel * size_of(layout.dtype()), offload::io_alignment);
}

std::vector<Bytes> record_sizes(const FlatLayout& layout, const Offload& offload) {
  const std::vector<MemoryTier> homes = parameter_homes(layout, offload);
  std::vector<Bytes> sizes;
  for (std::size_t index = 0; index < homes.size(); ++index) {
    const bool here = homes[index] == MemoryTier::nvme;
    sizes.push_back(here ? record_bytes(layout, layout.segments()[index]) : 0);
  }
  return sizes;
}

}  // namespace

Bytes SwappedParameters::file_bytes(const FlatLayout& layout, const Offload& offload) {
  return offload::RecordSwap::file_bytes(record_sizes(layout, offload));
}

Bytes SwappedParameters::buffer_bytes(const FlatLayout& layout, const Offload& offload) {
  return offload::RecordSwap::buffer_bytes(record_sizes(layout, offload),
                                           offload.parameter_buffers);
}

SwappedParameters::SwappedParameters(const FlatLayout& layout,
                                     const Offload& offload,
                                     const DiskPlace& place,
                                     StreamView stream)
    : layout_(layout),
      swap_(place.io,
            place.directory,
            record_sizes(layout, offload),
            {offload.parameter_buffers, true},
            place.buffers,
            stream) {
  place.ledger.add(MemoryCategory::parameters, file_bytes(layout, offload));
}

offload::FileRange SwappedParameters::whole(int segment) const {
  return {0, record_bytes(layout_, layout_.segment(segment))};
}

HostView SwappedParameters::view(int segment, std::span<std::byte> memory) const {
  return {memory.data(), layout_.dtype(), {layout_.segment(segment).shard_numel}};
}

void SwappedParameters::expect(int segment) {
  swap_.expect(segment, whole(segment));
}

HostView SwappedParameters::take(int segment) {
  return view(segment, swap_.take(segment, whole(segment)));
}

HostView SwappedParameters::replace(int segment) {
  return view(segment, swap_.take(segment, {}));
}

void SwappedParameters::release(int segment, bool changed) {
  swap_.release(segment, changed ? whole(segment) : offload::FileRange{});
}

}  // namespace dstrain::zero
