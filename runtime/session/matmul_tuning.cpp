#include "runtime/session/matmul_tuning.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/base/log.h"

namespace dstrain::session {

/// Returns why a rank cannot, with its number; empty: all can.
std::string MatmulTuning::use(const std::string& algorithms) {
  const std::vector<std::string> reasons = parts_.control.gather_texts(
      parts_.backend.use_algorithms(algorithms, parts_.streams.compute));
  const auto first = std::ranges::find_if(reasons, [](const auto& text) { return !text.empty(); });
  if (first == reasons.end()) return "";
  return fmt::format("{} (rank {})", *first, first - reasons.begin());
}

void MatmulTuning::use_kept(const std::string& kept) {
  if (kept.empty()) return;
  const std::string reason = use(kept);
  uses_kept_ = reason.empty();
  if (uses_kept_ || !speaks()) return;
  log_warning(
      fmt::format("the algorithms for matrix products that the checkpoint keeps cannot be used: "
                  "{}; where they cannot, products take the device's own choice",
                  reason));
}

std::string MatmulTuning::settle(const std::string& kept) {
  if (!kept.empty()) {
    if (uses_kept_) tell_count("are not among those that the checkpoint keeps, or are refused,");
    return kept;
  }
  for (const StreamView stream : {parts_.streams.compute, parts_.streams.communication,
                                  parts_.streams.copies, parts_.streams.transfers}) {
    stream.synchronize();
  }
  parts_.control.barrier();  // ranks that share a GPU leave it to rank 0
  const std::string own =
      speaks() ? parts_.backend.tune_products(parts_.streams.compute, parts_.room) : "";
  std::string chosen = parts_.control.broadcast(own, 0);
  if (chosen.empty()) return chosen;
  const std::string reason = use(chosen);
  if (!reason.empty() && speaks()) {
    log_warning(
        fmt::format("the algorithms that rank 0 has chosen for matrix products cannot be used "
                    "everywhere: {}; where they cannot, products take the device's own choice",
                    reason));
  }
  tell_count("found no memory to be tried in, or no algorithm that runs,");
  return chosen;
}

/// Of rank 0's products, all of which the others have.
void MatmulTuning::tell_count(const char* rest) const {
  if (!speaks()) return;
  const auto [all, chosen] = parts_.backend.count_products(parts_.streams.compute);
  std::string text = fmt::format("{} of {} matrix products take tuned algorithms", chosen, all);
  if (chosen < all) {
    text += fmt::format("; {} {} and take the device's own choice", all - chosen, rest);
  }
  log_info(text);
}

}  // namespace dstrain::session
