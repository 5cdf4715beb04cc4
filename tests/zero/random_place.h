#pragma once
#include <array>
#include <random>

#include "tests/zero/training_fixture.h"

namespace dstrain::test {

/// One of the choices.
template <class... Choices>
auto draw(std::mt19937& random, Choices... choices) {
  const std::array all{choices...};
  return all[random() % all.size()];
}

/// Changes of a case what changes no bit of it: where things lie, when they move, how they are cut.
/// `nvme_path` is for what lies on a disk; `early`: whether such states may be updated early.
void draw_place(TrainingCase& settings,
                std::mt19937& random,
                const std::string& nvme_path,
                bool early);

/// A case with these sums has the bits of stage 0, or of stage 2, whose sums have another order.
inline int plain_stage(const TrainingCase& settings) {
  return settings.stage > 1 && settings.accumulation > 1 ? 2 : 0;
}

}  // namespace dstrain::test
