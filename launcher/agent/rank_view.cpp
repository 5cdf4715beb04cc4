#include "launcher/agent/rank_view.h"

#include <algorithm>

#include "launcher/process/proc_thread.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

bool alike(const RankLook& a, const RankLook& b) {
  return a.state == b.state && a.save_state == b.save_state &&
         a.progress.compute.changes == b.progress.compute.changes &&
         a.progress.collective.sequence == b.progress.collective.sequence &&
         a.progress.collective.inside == b.progress.collective.inside &&
         a.progress.save.changes == b.progress.save.changes;
}

}  // namespace

RankView::RankView(int rank, int page_fd) : rank_(rank) {
  Result<ProgressPage> page = ProgressPage::map(page_fd);
  if (!page.ok()) fail(ErrorCode::io, "the progress of rank {}: {}", rank, page.error());
  page_ = std::move(page.value());
}

std::optional<RankLook> RankView::look() {
  RankLook look = last_;
  look.rank = rank_;
  if (const auto progress = page_->read()) look.progress = *progress;
  const pid_t computing = look.progress.compute.thread;
  look.state = thread_state(pid_, computing != 0 ? computing : pid_);
  const SaveState& save = look.progress.save;
  look.save_state = save.busy != 0 ? thread_state(pid_, save.thread) : '?';
  if (alike(look, last_)) return std::nullopt;
  last_ = look;
  return look;
}

std::vector<pid_t> RankView::threads() const {
  const RankProgress& progress = last_.progress;
  std::vector<pid_t> threads{progress.compute.thread, progress.collective.thread};
  if (progress.save.busy != 0) threads.push_back(progress.save.thread);
  std::erase(threads, 0);
  if (threads.size() > 1 && threads[0] == threads[1]) threads.erase(threads.begin() + 1);
  if (threads.empty()) threads.push_back(pid_);
  return threads;
}

}  // namespace dstrain::launcher
