#pragma once
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "runtime/base/deadline.h"
#include "runtime/comm/control/control_group.h"
#include "runtime/comm/nccl/nccl_connection.h"
#include "runtime/device/cuda/late_failure.h"

namespace dstrain::comm {

/// Ends the collectives of a group that cannot end: nothing in NCCL tells a rank that another one
/// has died, hangs or does something else, and a GPU that waits for it waits for ever.
///
/// A thread of each rank exchanges with those of the others, some times a second, how many
/// collectives the rank's GPU has begun, beside all that the ranks compute and without a call of
/// CUDA's, which may wait for the GPU. So a rank whose process has ended, or that began fewer while
/// this one waits for too long, is known by name. Then it says why, to the streams and the other
/// ranks, and aborts the connection.
class NcclWatch {
 public:
  /// `control` is the watch's alone. `connection` must outlive it.
  NcclWatch(std::unique_ptr<ControlGroup> control,
            NcclConnection& connection,
            double timeout_seconds);
  NcclWatch(const NcclWatch&) = delete;
  NcclWatch& operator=(const NcclWatch&) = delete;
  NcclWatch(NcclWatch&&) = delete;
  NcclWatch& operator=(NcclWatch&&) = delete;
  /// As leave(), without a word to the other ranks: they see the process end, and name it.
  ~NcclWatch();

  /// An operation begins and ends on the GPU, one at a time. Thread-safe, as what follows.
  void begin(const Call& call);
  void end();
  /// Why the group goes on no more; what streams fail with.
  [[nodiscard]] const std::shared_ptr<cuda::LateFailure>& failure() const { return failure_; }
  /// The first failure is spread to all ranks and ends the connection.
  void fail_with(const GroupFailure& failure) noexcept;
  /// fail_with() of an abort by this rank.
  void abort() noexcept;
  /// This rank launches nothing more: the others go on without it. Returns once they know.
  void leave();

 private:
  /// What a rank tells the others.
  struct Told {
    std::int64_t begun = 0;  ///< collectives, of all ranks
    Call call{};             ///< the last of them
    std::int64_t leaves = 0;
  };
  /// What runs on the GPU.
  struct Running {
    Call call;
    Deadline deadline;
  };
  void run();
  bool look();
  void look_at(std::span<const Told> all);
  void check_agreement(std::span<const Told> all) const;
  void check_time(std::span<const Told> all) const;
  std::vector<Told> exchange(const Told& own);
  void rest();
  void stop(bool tells) noexcept;
  [[nodiscard]] std::string doing(const std::string& why) const;

  std::unique_ptr<ControlGroup> control_;
  NcclConnection& connection_;
  double timeout_seconds_;
  std::shared_ptr<cuda::LateFailure> failure_ = std::make_shared<cuda::LateFailure>();
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Told own_;                        ///< guarded, as the next two
  std::optional<Running> running_;  ///< now
  bool stopping_ = false;
  std::vector<Told> last_;  ///< of the thread: what all ranks said, once one of them leaves
  std::thread thread_;      // uses the rest: starts last
};

}  // namespace dstrain::comm
