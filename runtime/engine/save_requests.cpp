#include "runtime/engine/save_requests.h"

namespace dstrain::engine {

bool SaveRequests::due(std::uint32_t newest, std::int64_t step) {
  const std::int64_t saving = checkpointer_.saving_step();
  if (newest <= taken_ || step == 0 || (saving != 0 && saving != step)) return false;
  taken_ = newest;
  step_ = step;
  return saving != step && checkpointer_.saved_step() != step;
}

void SaveRequests::answer() {
  if (answered_ == taken_ || rank_ != 0) return;
  SaveAnswer answer{.request = taken_, .step = step_, .checkpoint = {}, .failure = {}};
  if (checkpointer_.saved_step() >= step_) {
    answer.step = checkpointer_.saved_step();
    answer.checkpoint = std::filesystem::absolute(checkpointer_.path_of(answer.step)).string();
  } else if (checkpointer_.saving_step() == 0) {
    answer.failure = checkpointer_.failure();
  } else {
    return;
  }
  if (control_.tell(answer)) answered_ = taken_;
}

}  // namespace dstrain::engine
