#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace dstrain::profile {

/// What goes on beside each other in a rank. Spans of a lane that are not nested do not overlap;
/// without overlap one thread, or one stream of a device, fills both compute and communication.
enum class Lane : std::uint8_t {
  compute,
  communication,
  data,
  disk_reads,
  disk_writes,
  early_updates,  ///< those that do not wait for the norm, beside backward
  // Where a device beside the host computes:
  host,       ///< waits, exchanges, norms and updates of the thread that launches
  copies,     ///< of activations between device and host
  transfers,  ///< of gradients and updated parameters between the device and the host
};
inline constexpr std::size_t lane_count = 9;
inline constexpr std::array<std::string_view, lane_count> lane_names{
    "compute",       "communication", "data",   "disk reads", "disk writes",
    "early updates", "host",          "copies", "transfers"};
/// The lanes of a rank that computes on the host.
inline constexpr std::size_t host_lane_count = 6;

enum class Activity : std::uint8_t {
  step,            ///< encloses the others of the compute lane; detail: its number
  optimizer_step,  ///< encloses the updates, waits and collectives between them included
  wait,            ///< for communication, data, a disk or a tile; encloses other waits at most
  // Work of the compute lane, and updates of the early ones; detail: the unit, or the segment of
  // norm and update.
  forward,
  recompute,
  backward,
  norm,
  update,
  // Of the communication lane; detail: bytes that this rank hands in.
  all_gather,
  reduce_scatter,
  all_reduce,
  all_to_all,
  broadcast,
  send,
  receive,
  exchange,  ///< what the ranks tell each other once a step; no detail
  // Of the data lane; detail: the step.
  load,
  // Of a disk's lanes, as long as one block or more is under way; detail: bytes of those that
  // began.
  read,
  write,
  // Between device and host; detail: bytes. Of the communication lane: gradients to the host.
  copy,
};
inline constexpr std::array<std::string_view, 20> activity_names{
    "step",    "optimizer_step", "wait",           "forward",    "recompute",  "backward",  "norm",
    "update",  "all_gather",     "reduce_scatter", "all_reduce", "all_to_all", "broadcast", "send",
    "receive", "exchange",       "load",           "read",       "write",      "copy"};

constexpr std::string_view name_of(Activity activity) {
  return activity_names.at(static_cast<std::size_t>(activity));
}

/// How it is shown: "step 3", "backward h.0", "all_gather". `units`: names, by a unit's number.
std::string label(Activity activity, std::int64_t detail, std::span<const std::string> units);

/// Whether a rank gets on with its step while it does this.
constexpr bool is_work(Activity activity) {
  return activity >= Activity::forward && activity <= Activity::update;
}

/// Whether ranks do it together.
constexpr bool is_collective(Activity activity) {
  return activity >= Activity::all_gather && activity <= Activity::exchange;
}

/// One activity from beginning to end, in seconds since the timeline's origin. Plain data, sent
/// between ranks as it is.
struct Span {
  double begin = 0;
  double end = 0;
  std::int64_t detail = 0;
  Activity activity = Activity::step;
  [[nodiscard]] double seconds() const { return end - begin; }
};

/// What the sensors of a rank's GPU said, so many seconds after the timeline's origin. Plain data.
struct GpuSample {
  double at = 0;
  std::optional<double> watts{};
  std::optional<double> busy_percent{};
};

}  // namespace dstrain::profile
