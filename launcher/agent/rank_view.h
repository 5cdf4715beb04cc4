#pragma once
#include <optional>
#include <vector>

#include <sys/types.h>

#include "launcher/protocol/rank_look.h"
#include "runtime/rank/progress_page.h"

namespace dstrain::launcher {

/// Observes a rank without disturbing it: reads the page in which the rank publishes its progress,
/// and the states of its threads.
class RankView {
 public:
  RankView() = default;  ///< sees nothing
  /// Maps the rank's page from this descriptor. Throws Error{io}.
  RankView(int rank, int page_fd);
  void started(pid_t pid) { pid_ = pid; }

  /// The rank's state, if it has changed since the last call.
  std::optional<RankLook> look();
  /// The threads that matter, the computing one first.
  [[nodiscard]] std::vector<pid_t> threads() const;

 private:
  int rank_ = 0;
  pid_t pid_ = 0;
  std::optional<ProgressPage> page_;
  RankLook last_;
};

}  // namespace dstrain::launcher
