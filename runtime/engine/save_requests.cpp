#include "runtime/engine/save_requests.h"

#include <algorithm>

namespace dstrain::engine {

bool SaveRequests::due(std::span<const std::uint32_t> votes, std::int64_t step) {
  const std::int64_t saving = checkpointer_.saving_step();
  const bool asked = !std::ranges::equal(votes, granted_);
  if (!asked || step == 0 || (saving != 0 && saving != step)) return false;
  std::ranges::copy(votes, granted_.begin());
  step_ = step;
  return saving != step && checkpointer_.saved_step() != step;
}

void SaveRequests::answer() {
  if (control_.answered_save_request() == own_granted_) return;
  SaveAnswer answer{.request = own_granted_, .step = step_, .checkpoint = {}, .failure = {}};
  if (checkpointer_.saved_step() >= step_) {
    answer.step = checkpointer_.saved_step();
    answer.checkpoint = std::filesystem::absolute(checkpointer_.path_of(answer.step)).string();
  } else if (checkpointer_.saving_step() == 0) {
    answer.failure = checkpointer_.failure();
  } else {
    return;
  }
  (void)control_.tell(answer);  // again after the next step if it must be
}

}  // namespace dstrain::engine
