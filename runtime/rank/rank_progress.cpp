#include "runtime/rank/rank_progress.h"

#include <fmt/format.h>

namespace dstrain {
namespace {

constexpr std::array<std::string_view, 9> phase_names{"starting",
                                                      "waiting for the other ranks to start",
                                                      "loading",
                                                      "training",
                                                      "evaluating",
                                                      "saving",
                                                      "waiting for a checkpoint to be whole",
                                                      "writing the model",
                                                      "done"};
constexpr std::array<std::string_view, 8> work_names{"",
                                                     "between steps",
                                                     "waiting for tokens",
                                                     "forward",
                                                     "forward again",
                                                     "backward",
                                                     "gradient norm",
                                                     "update"};

template <std::size_t size>
std::string_view name_of(const std::array<std::string_view, size>& names, std::uint8_t index) {
  return index < size ? names[index] : "unknown";
}

}  // namespace

std::string describe(const ComputeState& state) {
  std::string text = state.step > 0 ? fmt::format("step {}, ", state.step) : "";
  const auto work = name_of(work_names, static_cast<std::uint8_t>(state.work));
  const bool only_work = state.phase == RunPhase::training && !work.empty();
  if (!only_work) text += name_of(phase_names, static_cast<std::uint8_t>(state.phase));
  if (!only_work && !work.empty()) text += ", ";
  text += work;
  if (state.unit >= 0) text += fmt::format(" of unit {}", state.unit);
  return text;
}

std::string describe(const CollectiveState& state) {
  std::string text(text_of(state.operation));
  if (!text_of(state.dtype).empty()) {
    text += fmt::format(" of {} {}", state.numel, text_of(state.dtype));
  }
  if (state.peer >= 0) text += fmt::format(", rank {}", state.peer);
  return text;
}

}  // namespace dstrain
