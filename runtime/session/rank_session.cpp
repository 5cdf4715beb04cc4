#include "runtime/session/rank_session.h"

#include <utility>

#include "runtime/backend/open_backend.h"
#include "runtime/device/crossing_tier.h"
#include "runtime/engine/profile_report.h"
#include "runtime/os/gpu_files.h"

namespace dstrain::session {
namespace {

DeviceRoom checked_room(const RankSession::Inputs& inputs, Backend& backend) {
  if (shares_host_memory(backend.device().kind)) return {};
  if (inputs.worker.local_world_size > count_visible_gpu_files()) return {};
  const DeviceRoom room = find_room(backend, inputs.worker.local_world_size);
  inputs.check_room(room);
  return room;
}

comm::World join(const RankSession::Inputs& inputs, const RankControl& control) {
  const InPhase meeting(&inputs.progress, RunPhase::meeting);
  return comm::join_world(inputs.worker, inputs.alike, comm::news_for(control));
}

bool writes_profile(const RankSession::Inputs& inputs) {
  return !inputs.settings.output.profile.empty();
}

std::unique_ptr<StreamClock> make_stream_clock(const RankSession::Inputs& inputs,
                                               Backend& backend,
                                               const Clock& clock) {
  return writes_profile(inputs) ? backend.make_stream_clock(clock) : nullptr;
}

std::unique_ptr<profile::Timeline> make_recording_timeline(const Clock& clock,
                                                           StreamClock* device,
                                                           StreamView compute) {
  if (device == nullptr) return std::make_unique<profile::Timeline>(clock);
  return std::make_unique<profile::Timeline>(clock, profile::Timeline::Device{*device, compute});
}

/// `device`: null if only the clock of the host tells. A profiler needs no spans, only a timeline
/// that shows it ranges.
std::unique_ptr<profile::Timeline> make_timeline(const RankSession::Inputs& inputs,
                                                 const Clock& clock,
                                                 StreamClock* device,
                                                 HostRanges* ranges,
                                                 StreamView compute) {
  std::unique_ptr<profile::Timeline> timeline;
  if (writes_profile(inputs)) {
    timeline = make_recording_timeline(clock, device, compute);
  } else if (ranges != nullptr) {
    timeline = std::make_unique<profile::Timeline>(clock, 1);
  }
  if (ranges != nullptr) timeline->show(*ranges, engine::unit_names(inputs.model));
  return timeline;
}

/// Where the store allocates what it keeps in each tier.
zero::ShardedStore::Memory store_memory(RankMemory& memory,
                                        const zero::Offload& offload,
                                        const RankDisks& disks) {
  const bool to_disk = offload.parameters == MemoryTier::nvme;
  TierMemory& parameters = memory.of(to_disk ? offload.staging : offload.parameters);
  TierMemory& optimizer = memory.of(offload.optimizer);
  const zero::RankShards::Memory shards{
      .device = {memory.device.parameters, memory.device.gradients, memory.device.optimizer},
      .host = {parameters.parameters, optimizer.gradients, optimizer.optimizer},
      .staging = memory.of(offload.staging).buffers,
      .disks = {disks.parameters(), disks.optimizer()}};
  return {shards, memory.device.buffers};
}

}  // namespace

RankSession::OwnStreams RankSession::make_streams(Backend& backend, const Inputs& inputs) {
  OwnStreams streams{.compute = backend.make_stream(Backend::StreamUse::computing),
                     .communication = nullptr,
                     .copies = nullptr,
                     .transfers = nullptr};
  if (inputs.settings.tf32) backend.use_tf32(*streams.compute);
  const auto beside = [&] {
    return backend.make_stream(Backend::StreamUse::beside_computing);
  };
  const MemorySetup& memory = inputs.memory;
  if (memory.store.overlap.enabled) streams.communication = beside();
  if (memory.engine.mode == engine::FrameMode::host_checkpointing) streams.copies = beside();
  const bool host_updates = memory.store.offload.optimizer != MemoryTier::device;
  if (host_updates && backend.device() != Device{}) streams.transfers = beside();
  return streams;
}

Streams RankSession::views(const OwnStreams& streams) {
  const auto or_compute = [&](const std::unique_ptr<Stream>& stream) -> StreamView {
    return stream ? *stream : *streams.compute;
  };
  return {*streams.compute, or_compute(streams.communication), or_compute(streams.copies),
          or_compute(streams.transfers)};
}

RankSession::RankSession(const Inputs& inputs)
    : control_(RankControl::from_environment()),
      backend_(open_backend({inputs.model.device, inputs.worker.local_rank})),
      room_(checked_room(inputs, *backend_)),
      own_streams_(make_streams(*backend_, inputs)),
      streams_(views(own_streams_)),
      world_(join(inputs, control_)),
      memory_(*backend_, inputs.worker.device_memory_bytes, world_.communicator->memory()),
      communicator_(
          backend_->connect({.communicator = std::move(world_.communicator),
                             .control = *world_.control,
                             .staging = memory_.of(inputs.memory.store.offload.staging).staging,
                             .timeout_seconds = inputs.worker.timeout_seconds})),
      stream_clock_(make_stream_clock(inputs, *backend_, clock_)),
      timeline_(make_timeline(
          inputs, clock_, stream_clock_.get(), backend_->host_ranges(), streams_.compute)),
      collective_records_(timeline_.get(), &inputs.progress),
      control_group_(*world_.control, inputs.progress),
      disks_({.offload = inputs.memory.store.offload,
              .aio = inputs.settings.aio,
              .zero = inputs.settings.zero,
              .worker = inputs.worker},
             memory_,
             timeline_.get()),
      store_({*inputs.memory.layout, *communicator_,
              store_memory(memory_, inputs.memory.store.offload, disks_),
              inputs.memory.groups.get(), timeline_.get()},
             inputs.memory.store,
             streams_),
      engine_({inputs.model, store_, memory_.device.activations,
               memory_.of(crossing_tier(inputs.model.device)).activations, timeline_.get(),
               &inputs.progress},
              inputs.memory.engine,
              streams_) {
  communicator_->set_observer(&collective_records_);
}

}  // namespace dstrain::session
