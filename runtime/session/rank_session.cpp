#include "runtime/session/rank_session.h"

#include <utility>

#include "runtime/device/crossing_tier.h"
#include "runtime/engine/profile_report.h"

namespace dstrain::session {
namespace {

/// Before anything is allocated.
Backend& checked_backend(const RankSession::Inputs& inputs) {
  inputs.rank.require_alike(inputs.alike);
  inputs.check_room(inputs.rank.room());
  return inputs.rank.backend();
}

bool writes_profile(const RankSession::Inputs& inputs) {
  return !inputs.settings.output.profile.empty();
}

std::unique_ptr<StreamClock> make_stream_clock(const RankSession::Inputs& inputs,
                                               Backend& backend) {
  return writes_profile(inputs) ? backend.make_stream_clock(inputs.rank.clock()) : nullptr;
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
                                                 StreamClock* device,
                                                 HostRanges* ranges,
                                                 StreamView compute) {
  const Clock& clock = inputs.rank.clock();
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
    : model_(inputs.model),
      progress_(inputs.rank.progress()),
      backend_(checked_backend(inputs)),
      own_streams_(make_streams(backend_, inputs)),
      streams_(views(own_streams_)),
      host_communicator_(inputs.rank.make_communicator()),
      memory_(backend_, inputs.device_memory, host_communicator_->memory()),
      communicator_(
          backend_.connect({.communicator = std::move(host_communicator_),
                            .control = inputs.rank.control_group(),
                            .staging = memory_.of(inputs.memory.store.offload.staging).staging,
                            .timeout_seconds = inputs.rank.worker().timeout_seconds})),
      stream_clock_(make_stream_clock(inputs, backend_)),
      timeline_(
          make_timeline(inputs, stream_clock_.get(), backend_.host_ranges(), streams_.compute)),
      collective_records_(timeline_.get(), &inputs.rank.progress()),
      control_group_(inputs.rank.control_group(), inputs.rank.progress()),
      disks_({.offload = inputs.memory.store.offload,
              .aio = inputs.settings.aio,
              .zero = inputs.settings.zero,
              .worker = inputs.rank.worker()},
             memory_,
             timeline_.get()),
      store_({*inputs.memory.layout, *communicator_,
              store_memory(memory_, inputs.memory.store.offload, disks_),
              inputs.memory.groups.get(), timeline_.get()},
             inputs.memory.store,
             streams_) {
  communicator_->set_observer(&collective_records_);
  if (inputs.memory.decoder) {
    decoder_.emplace(engine_inputs(), *inputs.memory.decoder, streams_.compute);
  } else if (inputs.has_engine) {
    engine_.emplace(engine_inputs(), inputs.memory.engine, streams_);
  }
}

engine::EngineInputs RankSession::engine_inputs() {
  return {model_,
          store_,
          memory_.device.activations,
          memory_.of(crossing_tier(model_.device)).activations,
          timeline_.get(),
          &progress_};
}

}  // namespace dstrain::session
