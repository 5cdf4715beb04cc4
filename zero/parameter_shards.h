#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/model/parameter_source.h"
#include "runtime/tensor/buffer.h"
#include "zero/communication.h"
#include "zero/flat_layout.h"
#include "zero/gather_slots.h"
#include "zero/offload.h"
#include "zero/overlap.h"
#include "zero/part_schedule.h"
#include "zero/stage_policy.h"
#include "zero/state_runs.h"
#include "zero/swapped_parameters.h"

namespace dstrain::zero {

/// A rank's part of the parameters in the model's dtype: each segment whole, or this rank's shard
/// of it, on the device or offloaded. All references must outlive it.
class ParameterShards {
 public:
  struct Memory {
    MemoryResource& parameters;
    MemoryResource& offloaded;        ///< shards in host memory
    MemoryResource& buffers;          ///< for gathered segments
    const DiskPlace* disk = nullptr;  ///< shards on a disk
  };
  struct Options {
    StagePolicy policy;
    Overlap overlap;
    Offload offload;
  };
  ParameterShards(const FlatLayout& layout,
                  Options options,
                  Communication communication,
                  Memory memory,
                  StreamView stream);

  /// Whether some segments are not whole on the device of a rank: in a world of one, only when
  /// they are offloaded.
  static bool gathers(const FlatLayout& layout, const Options& options);
  /// Bytes of all that a rank keeps in the memory of the device or (`offloaded`) of the host.
  static Bytes kept_bytes(const FlatLayout& layout, const Options& options, bool offloaded);

  /// Fills this rank's shard of a segment from `source`.
  void load_shard(int segment, const model::ParameterSource& source, StreamView stream);
  /// All of what hold() gave is loaded: gathers what is kept whole.
  void loaded(int segment, StreamView stream);
  void expect(std::span<const int> parts, std::int64_t rounds) { schedule_.expect(parts, rounds); }
  /// The whole parameters of a part. Gathers the segments that are not here, and begins to gather
  /// those of the next part.
  std::span<const TensorView> acquire(int part, StreamView stream);
  void release(int part);
  /// What this rank updates of a segment: its shard, or all of it when every rank updates all. Its
  /// values are to be read, or all replaced. Until let_go(), loaded() or publish().
  TensorView hold(int segment, bool replaced);
  TensorView hold(const StateRun& run, bool replaced) {
    return hold(run.segment, replaced).part(run.offset, {run.numel});
  }
  /// It has not changed.
  void let_go(int segment) { end_hold(segment, false); }
  /// All of it is new, and will be published: what lies on a disk goes there.
  void write_back(int segment) { end_hold(segment, true); }
  /// All of it is new: begins to make every copy on this rank new.
  void publish(int segment, StreamView stream);

 private:
  [[nodiscard]] bool whole(const Segment& segment) const;
  [[nodiscard]] bool swapped(int segment) const;
  [[nodiscard]] TensorView own_shard(int segment) const;
  void gather(int segment, StreamView stream);
  void gather_whole(int segment, StreamView stream);
  void prefetch(StreamView stream);
  void read_ahead();
  void end_hold(int segment, bool changed);
  [[nodiscard]] bool reused_soon(int segment) const;
  void view_parts();

  const FlatLayout& layout_;
  Options options_;
  Communication communication_;
  PartSchedule schedule_;
  std::vector<MemoryTier> homes_;  ///< per segment
  Buffer memory_;
  Buffer offloaded_;
  std::optional<SwappedParameters> swap_;  ///< none when no shard is on a disk
  std::vector<TensorView> held_;           ///< per segment: when swapped and in use outside a slot
  std::unique_ptr<GatherSlots> slots_;     ///< null when nothing is gathered
  std::vector<TensorView> segments_;       ///< what is kept, flat
  std::vector<std::vector<TensorView>> views_;  ///< per part
  std::vector<std::vector<int>> gathered_;      ///< per part: its segments that are gathered
  std::vector<int> in_use_;                     ///< of these, by parts that are acquired
};

}  // namespace dstrain::zero
