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

/// Ends the collectives of a group that can no longer complete. NCCL does not tell a rank that
/// another one has died, hangs or does something else, and a GPU that waits for it waits forever.
///
/// A thread of each rank exchanges with those of the others, several times a second, how many
/// collectives its GPU has begun. It runs beside the computation and makes no CUDA call, which
/// could wait for the GPU. It can therefore name a rank whose process has ended, or that has begun
/// fewer collectives while this one waits too long. Then it reports the reason to the streams and
/// the other ranks, and aborts the connection.
class NcclWatch {
 public:
  /// `control` has no other user. `connection` must outlive this.
  NcclWatch(std::unique_ptr<ControlGroup> control,
            NcclConnection& connection,
            double timeout_seconds);
  NcclWatch(const NcclWatch&) = delete;
  NcclWatch& operator=(const NcclWatch&) = delete;
  NcclWatch(NcclWatch&&) = delete;
  NcclWatch& operator=(NcclWatch&&) = delete;
  /// Stops without telling the other ranks, unlike leave(): they see the process end, and name it.
  ~NcclWatch();

  /// Called when an operation begins and ends on the GPU, one at a time. Thread-safe, like the
  /// functions below.
  void begin(const Call& call);
  void end();
  /// The reason why the group has failed; streams fail with it.
  [[nodiscard]] const std::shared_ptr<cuda::LateFailure>& failure() const { return failure_; }
  /// Spreads the first failure to all ranks and ends the connection.
  void fail_with(const GroupFailure& failure) noexcept;
  /// fail_with() of an abort by this rank.
  void abort() noexcept;
  /// This rank launches nothing more, and the others continue without it. Returns once they know.
  void leave();

 private:
  /// A rank's message to the others.
  struct Told {
    std::int64_t begun = 0;  ///< collectives of all ranks, not messages
    Call call{};             ///< the last of these
    std::int64_t leaves = 0;
  };
  /// The operation that runs on the GPU.
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
  Told own_;                        ///< guarded, like the next two
  std::optional<Running> running_;  ///< on the GPU now
  bool stopping_ = false;
  std::vector<Told> last_;  ///< used by the thread: all ranks' messages, once one of them leaves
  std::thread thread_;      // uses the other members, so it starts last
};

}  // namespace dstrain::comm
