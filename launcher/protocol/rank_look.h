#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/rank/rank_progress.h"

namespace dstrain::launcher {

/// An agent's view of one of its ranks. States are letters of /proc/PID/stat: R runs, S sleeps, D
/// sleeps uninterruptibly, T is stopped, t is traced, Z has ended; '?' where there is none.
struct RankLook {
  int rank = 0;
  char state = '?';       ///< of the computing thread
  char save_state = '?';  ///< of the thread that saves
  RankProgress progress;
};

/// One look of an agent at all its ranks.
struct AgentLook {
  std::int64_t now_ns = 0;      ///< by the clock of the ranks' `since_ns`
  double seconds = 0;           ///< in which they could make progress, since the look before
  std::vector<RankLook> ranks;  ///< those that changed since the last look
};

std::string encode_look(const AgentLook& look);
AgentLook decode_look(std::string_view payload);

/// The stacks of an agent's ranks, in answer to a request.
struct Stacks {
  std::uint32_t request = 0;
  /// A line of stack_mark and the rank's number before the lines of each rank; without such a line,
  /// why there are none.
  std::string text;
};
inline constexpr char stack_mark = '\x1e';

std::string encode_stacks(const Stacks& stacks);
Stacks decode_stacks(std::string_view payload);

}  // namespace dstrain::launcher
