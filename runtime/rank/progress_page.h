#pragma once
#include <exception>
#include <memory>

#include "runtime/base/result.h"
#include "runtime/base/unique_handle.h"
#include "runtime/os/published_record.h"
#include "runtime/rank/rank_progress.h"

/// Shared memory in which a rank publishes where it is, for its agent to read without waking it.
/// The agent makes the memory and names its descriptor in the rank's DSTRAIN_PROGRESS_FD.
namespace dstrain {

namespace env {
inline constexpr const char* progress_fd = "DSTRAIN_PROGRESS_FD";
}  // namespace env

/// Either end. Each group of writers belongs to one thread at a time; to publish takes some ten
/// nanoseconds: no lock, no system call.
class ProgressPage {
 public:
  /// Nobody else sees it. Throws Error{io}.
  ProgressPage();
  /// The rank's end: the page of its agent; one of its own where there is none.
  static ProgressPage from_environment();
  /// The agent's end.
  static Result<ProgressPage> map(int fd);
  /// Zeroed memory for a page, sealed against a change of its size. Throws Error{io}.
  static UniqueFd make_memory();

  // Of the computing thread.
  void enter(RunPhase phase);
  void begin_step(std::int64_t step);
  void begin_work(Work work, int unit = -1);
  [[nodiscard]] RunPhase phase() const { return compute_.phase; }

  // Of the communicating thread.
  /// What an operation is; the texts are cut where they do not fit into CollectiveState.
  struct Operation {
    std::string_view name;
    std::int64_t numel = 0;
    std::string_view dtype{};
    int peer = -1;
  };
  void begin_operation(const Operation& operation);
  void end_operation();

  // Of the saving thread.
  void begin_save();
  void advance_save();
  void end_save();

  /// None while a record is being written.
  [[nodiscard]] std::optional<RankProgress> read() const;

 private:
  struct Layout {
    alignas(64) PublishedRecord<ComputeState> compute;
    alignas(64) PublishedRecord<CollectiveState> collective;
    alignas(64) PublishedRecord<SaveState> save;
  };
  struct Unmap {
    void operator()(Layout* layout) const noexcept;
  };
  explicit ProgressPage(Layout* layout) : layout_(layout) {}
  void publish_compute();
  void publish_collective();
  void publish_save();

  std::unique_ptr<Layout, Unmap> layout_;
  // What each writer wrote last.
  ComputeState compute_;
  CollectiveState collective_;
  SaveState save_;
};

/// The saving thread is busy while this lives.
class SavePublished {
 public:
  explicit SavePublished(ProgressPage& page) : page_(page) { page_.begin_save(); }
  SavePublished(const SavePublished&) = delete;
  SavePublished& operator=(const SavePublished&) = delete;
  SavePublished(SavePublished&&) = delete;
  SavePublished& operator=(SavePublished&&) = delete;
  ~SavePublished() { page_.end_save(); }

 private:
  ProgressPage& page_;
};

/// The computing thread is in a phase while this lives, and then in the one before; a rank that
/// fails stays in the one in which it failed. Nothing when `page` is null.
class InPhase {
 public:
  InPhase(ProgressPage* page, RunPhase phase)
      : page_(page), before_(page != nullptr ? page->phase() : phase) {
    if (page_ != nullptr) page_->enter(phase);
  }
  InPhase(const InPhase&) = delete;
  InPhase& operator=(const InPhase&) = delete;
  InPhase(InPhase&&) = delete;
  InPhase& operator=(InPhase&&) = delete;
  ~InPhase() {
    const bool fails = std::uncaught_exceptions() > exceptions_;
    if (page_ != nullptr && !fails) page_->enter(before_);
  }

 private:
  ProgressPage* page_;
  RunPhase before_;
  int exceptions_ = std::uncaught_exceptions();  ///< at the begin
};

/// Nothing when `page` is null.
inline void begin_work(ProgressPage* page, Work work, int unit = -1) {
  if (page != nullptr) page->begin_work(work, unit);
}

}  // namespace dstrain
