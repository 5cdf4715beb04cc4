#pragma once
#include <exception>
#include <memory>
#include <mutex>

#include "runtime/base/result.h"
#include "runtime/base/unique_handle.h"
#include "runtime/os/published_record.h"
#include "runtime/rank/rank_progress.h"

/// Shared memory in which a rank publishes its progress, for its agent to read without waking it.
/// The agent creates the memory and names its descriptor in the rank's DSTRAIN_PROGRESS_FD.
namespace dstrain {

namespace env {
inline constexpr const char* progress_fd = "DSTRAIN_PROGRESS_FD";
}  // namespace env

/// Either end. Each group of writing functions belongs to one thread at a time. Publishing takes
/// about ten nanoseconds, without a lock or system call.
class ProgressPage {
 public:
  /// A page that no other process sees. Throws Error{io}.
  ProgressPage();
  /// The rank's end: its agent's page, or its own page if there is no agent.
  static ProgressPage from_environment();
  /// The agent's end.
  static Result<ProgressPage> map(int fd);
  /// Creates zeroed memory for a page, sealed against a change of its size. Throws Error{io}.
  static UniqueFd make_memory();

  // For the computing thread.
  void enter(RunPhase phase);
  void begin_step(std::int64_t step);
  void begin_work(Work work, int unit = -1);
  [[nodiscard]] RunPhase phase() const { return compute_.phase; }

  // For the communicating thread, and others that communicate meanwhile.
  /// An operation; texts that do not fit into CollectiveState are cut.
  struct Operation {
    std::string_view name;
    std::int64_t numel = 0;
    std::string_view dtype{};
    int peer = -1;
  };
  void begin_operation(const Operation& operation);
  void end_operation();

  // For the saving thread.
  void begin_save();
  void advance_save();
  void end_save();

  /// Returns none while a record is being written.
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
  void publish_collective();  ///< with the lock held
  void publish_save();

  std::unique_ptr<Layout, Unmap> layout_;
  // The last values of each writer.
  ComputeState compute_;
  std::unique_ptr<std::mutex> collective_mutex_ = std::make_unique<std::mutex>();
  CollectiveState collective_;
  SaveState save_;
};

/// Marks the saving thread as busy during its lifetime.
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

/// Sets the phase of the computing thread during its lifetime, then restores the earlier one; a
/// rank that fails keeps the phase in which it failed. Does nothing if `page` is null.
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

/// Does nothing if `page` is null.
inline void begin_work(ProgressPage* page, Work work, int unit = -1) {
  if (page != nullptr) page->begin_work(work, unit);
}

}  // namespace dstrain
