#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/engine/collective_records.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/observed_control_group.h"
#include "runtime/profile/timeline.h"
#include "runtime/session/joined_rank.h"
#include "runtime/session/memory_setup.h"
#include "runtime/session/rank_disks.h"
#include "runtime/session/rank_memory.h"
#include "zero/sharded_store.h"

namespace dstrain::session {

/// Everything with which a rank runs a model: streams, communicator, memory, disks, parameter store
/// and engine, or decoder. The only place where these are put together, so that training,
/// evaluation and the library make the same checks. Use from one thread.
class RankSession {
 public:
  /// All must outlive the session.
  struct Inputs {
    JoinedRank& rank;
    const model::Model& model;
    const MemorySetup& memory;
    const config::TrainSettings& settings;
    const std::vector<std::string>& alike;  ///< what all ranks must have in common, a line each
    Bytes device_memory = 0;                ///< budget of this session; 0: none
    /// Throws if the plan does not fit into the free memory of the device. Called before the
    /// session takes any.
    std::function<void(const DeviceRoom&)> check_room;
    bool has_engine = true;  ///< false: the caller makes engines, of engine_inputs()
  };

  /// Allocates what the plan says; the parameters are not loaded yet. Collective. Throws
  /// Error{config} if the ranks were given different options or data, Error{io} for a disk that
  /// cannot be used.
  explicit RankSession(const Inputs& inputs);

  [[nodiscard]] Backend& backend() { return backend_; }
  [[nodiscard]] const Streams& streams() const { return streams_; }
  [[nodiscard]] comm::ControlGroup& control_group() { return control_group_; }
  [[nodiscard]] RankMemory& memory() { return memory_; }
  [[nodiscard]] RankDisks& disks() { return disks_; }
  /// Null without --profile and without a profiler.
  [[nodiscard]] profile::Timeline* timeline() { return timeline_.get(); }
  [[nodiscard]] zero::ShardedStore& store() { return store_; }
  /// What engines of this session run on.
  [[nodiscard]] engine::EngineInputs engine_inputs();
  /// Of a session whose memory has no decoder.
  [[nodiscard]] engine::Engine& engine() { return *engine_; }
  /// Of one whose memory has a decoder.
  [[nodiscard]] engine::Decoder& decoder() { return *decoder_; }

 private:
  /// The compute stream stands in for streams that are null.
  struct OwnStreams {
    std::unique_ptr<Stream> compute;
    std::unique_ptr<Stream> communication;
    std::unique_ptr<Stream> copies;
    std::unique_ptr<Stream> transfers;
  };
  static OwnStreams make_streams(Backend& backend, const Inputs& inputs);
  static Streams views(const OwnStreams& streams);

  const model::Model& model_;
  ProgressPage& progress_;
  Backend& backend_;
  OwnStreams own_streams_;
  Streams streams_;
  std::unique_ptr<comm::Communicator> host_communicator_;  ///< until that of the device has it
  RankMemory memory_;
  std::unique_ptr<comm::Communicator> communicator_;
  std::unique_ptr<StreamClock> stream_clock_;  ///< null without --profile, and of the host
  std::unique_ptr<profile::Timeline> timeline_;
  engine::CollectiveRecords collective_records_;
  engine::ObservedControlGroup control_group_;
  RankDisks disks_;
  zero::ShardedStore store_;
  std::optional<engine::Engine> engine_;
  std::optional<engine::Decoder> decoder_;
};

}  // namespace dstrain::session
