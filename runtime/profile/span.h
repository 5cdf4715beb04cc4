#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace dstrain::profile {

/// Things that a rank does concurrently. Spans of one lane are nested or do not overlap. If
/// communication does not overlap computing, one thread, or one stream of a device, fills both
/// lanes.
enum class Lane : std::uint8_t {
  compute,
  communication,
  data,
  disk_reads,
  disk_writes,
  early_updates,  ///< updates during backward, which do not wait for the norm
  // Only if a device beside the host computes:
  host,       ///< the launching thread: waits, exchanges, norms and updates
  copies,     ///< activations, between device and host
  transfers,  ///< gradients and updated parameters, between device and host
};
inline constexpr std::size_t lane_count = 9;
inline constexpr std::array<std::string_view, lane_count> lane_names{
    "compute",       "communication", "data",   "disk reads", "disk writes",
    "early updates", "host",          "copies", "transfers"};
/// The number of lanes of a rank that computes on the host.
inline constexpr std::size_t host_lane_count = 6;

enum class Activity : std::uint8_t {
  step,            ///< encloses all others of the compute lane; detail: the step
  optimizer_step,  ///< encloses the updates, and the waits and collectives between them
  wait,            ///< for communication, data, a disk or a tile; may enclose only waits
  // Work of the compute and early-update lanes; detail: the unit, or for norm and update the
  // segment.
  forward,
  recompute,
  backward,
  norm,
  update,
  // The communication lane; detail: bytes of this rank's input.
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  broadcast,
  send,
  receive,
  exchange,  ///< of values between the ranks, once a step; no detail
  // The data lane; detail: the step.
  load,
  // The disk lanes: while at least one block is in flight; detail: bytes of the blocks that began.
  read,
  write,
  // Between device and host; detail: bytes. In the communication lane: gradients to the host.
  copy,
};
inline constexpr std::array<std::string_view, 20> activity_names{
    "step",    "optimizer_step", "wait",           "forward",    "recompute",  "backward",  "norm",
    "update",  "all_gather",     "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "send",
    "receive", "exchange",       "load",           "read",       "write",      "copy"};

constexpr std::string_view name_of(Activity activity) {
  return activity_names.at(static_cast<std::size_t>(activity));
}

/// Returns a span's label: "step 3", "backward h.0", "all_gather". `units`: names, by number.
std::string label(Activity activity, std::int64_t detail, std::span<const std::string> units);

/// Whether a rank makes progress on its step during this activity.
constexpr bool is_work(Activity activity) {
  return activity >= Activity::forward && activity <= Activity::update;
}

/// Whether the ranks do it together.
constexpr bool is_collective(Activity activity) {
  return activity >= Activity::all_gather && activity <= Activity::exchange;
}

/// One activity, in seconds since the timeline's origin. Plain data, sent between ranks as it is.
struct Span {
  double begin = 0;
  double end = 0;
  std::int64_t detail = 0;
  Activity activity = Activity::step;
  [[nodiscard]] double seconds() const { return end - begin; }
};

/// A reading of a GPU's sensors, `at` seconds after the timeline's origin. Plain data.
struct GpuSample {
  double at = 0;
  std::optional<double> watts{};
  std::optional<double> busy_percent{};
};

}  // namespace dstrain::profile
