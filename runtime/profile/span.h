#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dstrain::profile {

/// The threads of a rank whose work is recorded: one writes each lane. Without overlap one thread
/// writes both compute and communication.
enum class Lane : std::uint8_t { compute, communication, data };
inline constexpr std::size_t lane_count = 3;
inline constexpr std::array<std::string_view, lane_count> lane_names{"compute", "communication",
                                                                     "data"};

enum class Activity : std::uint8_t {
  step,  ///< encloses the others of the compute lane; detail: its number
  wait,  ///< for communication or data, or to be lent a tile; encloses other waits at most
  // Work of the compute lane; detail: the unit, or the segment of norm and update.
  forward,
  recompute,
  backward,
  norm,
  update,
  // Of the communication lane; detail: bytes that this rank hands in.
  all_gather,
  reduce_scatter,
  all_reduce,
  broadcast,
  send,
  receive,
  barrier,
  // Of the data lane; detail: the step.
  load,
};
inline constexpr std::array<std::string_view, 15> activity_names{
    "step",      "wait",   "forward",    "recompute",      "backward",
    "norm",      "update", "all_gather", "reduce_scatter", "all_reduce",
    "broadcast", "send",   "receive",    "barrier",        "load"};

constexpr std::string_view name_of(Activity activity) {
  return activity_names.at(static_cast<std::size_t>(activity));
}

/// Whether a rank gets on with its step while it does this.
constexpr bool is_work(Activity activity) {
  return activity >= Activity::forward && activity <= Activity::update;
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

}  // namespace dstrain::profile
