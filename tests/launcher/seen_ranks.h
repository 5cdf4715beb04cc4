#pragma once
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "launcher/job/watch.h"

namespace dstrain::test {

/// A rank as an agent may see it, in a few words.
struct SeenRank {
  std::uint64_t changes = 1;
  std::int64_t step = 5;
  RunPhase phase = RunPhase::training;
  std::uint64_t sequence = 10;
  bool inside = false;
  std::string_view operation = "all_gather";
  std::int64_t numel = 100;
  char state = 'S';
  bool saves = false;
  std::uint64_t save_changes = 0;

  [[nodiscard]] launcher::RankLook look(int rank) const {
    launcher::RankLook look;
    look.rank = rank;
    look.state = state;
    look.save_state = saves ? 'D' : '?';
    look.progress.compute.changes = changes;
    look.progress.compute.step = step;
    look.progress.compute.phase = phase;
    look.progress.collective.sequence = sequence;
    look.progress.collective.inside = inside ? 1 : 0;
    look.progress.collective.numel = numel;
    std::ranges::copy(operation, look.progress.collective.operation.begin());
    std::ranges::copy(std::string_view("f32"), look.progress.collective.dtype.begin());
    look.progress.save.busy = saves ? 1 : 0;
    look.progress.save.changes = save_changes;
    return look;
  }
};

}  // namespace dstrain::test
