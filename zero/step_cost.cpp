#include "zero/step_cost.h"

#include <algorithm>

#include "zero/shard_plan.h"
#include "zero/stage_policy.h"

namespace dstrain::zero {
namespace {

// Rates of a rank with two cores of the Xeon of docs/benchmarks.md, in units per second.
constexpr double flop_rate = 280e9;      // "fp32, one rank with two threads": 268 to 280 GFLOP/s
constexpr double update_rate = 50e9;     // AdamW: 28 bytes of 33.5 M parameters in 17 to 19 ms
constexpr double copy_rate = 15e9;       // the copy beside `bench comm`: 12.4 to 18.5 GB/s
constexpr double swap_rate = 2e9;        // saving and loading beside fio: 1.9 to 2.2 GB/s
constexpr double collective_rate = 6e9;  // two ranks send half of 0.6 (reduce_scatter) and of 0.95
                                         // (all_gather) times the copy

constexpr double backward_share = 2.0 / 3;  // of the FLOP of a step
constexpr Bytes adam_bytes = 28;            // per element: four floats read, three written
constexpr Bytes adam_states = 3;            // floats that are swapped: two moments and the master

/// Bytes sent by each of `world` ranks in one pass over `bytes`: a gather or a reduce-scatter.
Bytes sent_once(Bytes bytes, std::int64_t world) {
  return bytes / world * (world - 1);
}

/// The share of one segment in the work of a step.
class SegmentWork {
 public:
  SegmentWork(const FlatLayout& layout,
              const StepWorkInput& input,
              const Segment& segment,
              MemoryTier optimizer,
              MemoryTier parameters)
      : policy_(stage_policy(input.store.stage)),
        segment_(segment),
        optimizer_(optimizer),
        parameters_(parameters),
        world_(layout.world()),
        parameter_bytes_(size_of(segment.dtype)),
        passes_(input.micro_steps),
        early_(input.store.offload.early),
        beside_backward_(input.store.overlap.enabled && early_ != EarlyUpdate::off) {}

  void add_to(StepWork& work) const {
    if (!segment_.trainable) return add_uses(work);
    work.sent += sent_once(segment_.numel * reduced_bytes(), world_) +
                 sent_once(segment_.numel * parameter_bytes_ * gathers(), world_);
    work.updated += updated_numel() * (adam_bytes + (parameter_bytes_ == 4 ? 0 : parameter_bytes_));
    work.copied += segment_.shard_numel * (optimizer_copies() + parameter_copies());
    work.swapped += segment_.shard_numel * (optimizer_swaps() + parameter_swaps());
    if (beside_backward_) work.swapped_beside += segment_.shard_numel * optimizer_swaps();
  }

 private:
  /// Adds the gathers of a frozen segment.
  void add_uses(StepWork& work) const {
    const std::int64_t gathers = gathered_on_use() ? 2 * passes_ : 0;
    work.sent += sent_once(segment_.numel * parameter_bytes_ * gathers, world_);
    const Bytes bytes = segment_.shard_numel * parameter_bytes_ * gathers;
    if (parameters_ != MemoryTier::device) work.copied += bytes;
    if (parameters_ == MemoryTier::nvme) work.swapped += bytes;
  }
  [[nodiscard]] bool gathered_on_use() const {
    return policy_.shard_parameters && !segment_.persistent;
  }
  [[nodiscard]] std::int64_t updated_numel() const {
    return policy_.shard_optimizer ? segment_.shard_numel : segment_.numel;
  }
  /// Bytes per element that reductions move: an all-reduce moves all twice.
  [[nodiscard]] Bytes reduced_bytes() const {
    const std::int64_t times = policy_.shard_gradients ? passes_ : policy_.shard_optimizer ? 1 : 2;
    return times * size_of(DType::f32);
  }
  [[nodiscard]] std::int64_t gathers() const {
    if (gathered_on_use()) return 2 * passes_;
    return policy_.shard_optimizer ? 1 : 0;
  }
  /// Bytes per element of the shard: gradients go to the host, new parameters come back.
  [[nodiscard]] Bytes optimizer_copies() const {
    if (optimizer_ == MemoryTier::device) return 0;
    const std::int64_t times = policy_.shard_gradients ? passes_ : 1;
    return times * size_of(DType::f32) + (parameters_ == MemoryTier::device ? parameter_bytes_ : 0);
  }
  /// Likewise: each gather begins with a copy; what the device has updated goes back.
  [[nodiscard]] Bytes parameter_copies() const {
    if (parameters_ == MemoryTier::device) return 0;
    return (gathers() + (optimizer_ == MemoryTier::device ? 1 : 0)) * parameter_bytes_;
  }
  /// States and master, read and written, and the gradients of each pass. Gradients of the last
  /// pass that are used at once are not read; they are written only so that the update can be
  /// repeated.
  [[nodiscard]] Bytes optimizer_swaps() const {
    if (optimizer_ != MemoryTier::nvme) return 0;
    std::int64_t floats = 2 * (adam_states + passes_);
    if (early_ != EarlyUpdate::off) --floats;
    if (early_ == EarlyUpdate::irrevocable) --floats;
    return floats * size_of(DType::f32);
  }
  [[nodiscard]] Bytes parameter_swaps() const {
    return parameters_ == MemoryTier::nvme ? (gathers() + 1) * parameter_bytes_ : 0;
  }

  const StagePolicy& policy_;
  const Segment& segment_;
  MemoryTier optimizer_;
  MemoryTier parameters_;
  std::int64_t world_;
  Bytes parameter_bytes_;
  std::int64_t passes_;
  EarlyUpdate early_;
  bool beside_backward_;
};

}  // namespace

StepWork step_work(const FlatLayout& layout, const StepWorkInput& input) {
  constexpr double checkpointed = 4.0 / 3;  // forward, forward again and backward, which is two
  StepWork work{.flops = input.flops * static_cast<double>(input.micro_steps) *
                         (input.checkpointing ? checkpointed : 1)};
  const auto optimizer = optimizer_tiers(layout, input.store.offload);
  const auto parameters = parameter_tiers(layout, input.store.offload);
  for (const SegmentId id : layout.segments().ids()) {
    SegmentWork(layout, input, layout.segment(id), optimizer[id], parameters[id]).add_to(work);
  }
  return work;
}

double step_cost(const StepWork& work) {
  const auto seconds = [](Bytes bytes, double rate) {
    return static_cast<double>(bytes) / rate;
  };
  const double hidden =
      std::min(seconds(work.swapped_beside, swap_rate), backward_share * work.flops / flop_rate);
  return work.flops / flop_rate + seconds(work.sent, collective_rate) +
         seconds(work.updated, update_rate) + seconds(work.copied, copy_rate) +
         seconds(work.swapped, swap_rate) - hidden;
}

}  // namespace dstrain::zero
