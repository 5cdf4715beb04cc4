#include "cmd/dstraind/rank_streams.h"

namespace dstrain::cmd {

RankStreams::RankStreams(Backend& backend, const TrainSetup& setup)
    : compute_(backend.make_stream(Backend::StreamUse::computing)) {
  if (setup.settings.tf32) backend.use_tf32(*compute_);
  const auto beside = [&] {
    return backend.make_stream(Backend::StreamUse::beside_computing);
  };
  if (setup.store.overlap.enabled) communication_ = beside();
  if (setup.engine.mode == engine::FrameMode::host_checkpointing) copies_ = beside();
  const bool host_updates = setup.store.offload.optimizer != MemoryTier::device;
  if (host_updates && backend.device() != Device{}) transfers_ = beside();
}

}  // namespace dstrain::cmd
