#pragma once
#include <memory>
#include <span>
#include <string>

#include "runtime/backend/backend.h"
#include "runtime/base/clock.h"
#include "runtime/comm/make_communicator.h"
#include "runtime/rank/progress_page.h"
#include "runtime/rank/rank_control.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::session {

/// What a rank may take of a device other than the CPU, before any rank has.
struct DeviceRoom {
  Bytes free = 0;  ///< its share, where ranks share the device; 0: not known
  int gpu = 0;     ///< by its number
};

/// Of the device of one of `ranks` ranks of this machine.
DeviceRoom find_room(Backend& backend, int ranks);

/// This process as one of the ranks of a job: its device and its connections to the others. The
/// sessions of a rank share it, and it outlives them. Use from one thread.
class JoinedRank {
 public:
  enum class Sessions { one, several };
  /// Waits for the other ranks. `progress` must outlive it. Throws as comm::join_world() and
  /// open_backend().
  JoinedRank(const WorkerEnv& worker,
             DeviceKind device,
             ProgressPage& progress,
             Sessions sessions = Sessions::one);

  [[nodiscard]] const WorkerEnv& worker() const { return world_.worker; }
  [[nodiscard]] ProgressPage& progress() { return progress_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }
  [[nodiscard]] RankControl& control() { return control_; }
  [[nodiscard]] Backend& backend() { return *backend_; }
  /// What the device had free at the start; unknown on CPUs and on shared devices.
  [[nodiscard]] const DeviceRoom& room() const { return room_; }
  [[nodiscard]] comm::ControlGroup& control_group() { return *world_.control; }
  /// See comm::require_alike(). Collective.
  void require_alike(std::span<const std::string> own) const { comm::require_alike(world_, own); }
  /// Returns the communicator of all ranks, for one session alone. Collective.
  [[nodiscard]] std::unique_ptr<comm::Communicator> make_communicator();

 private:
  ProgressPage& progress_;
  SteadyClock clock_;
  RankControl control_;
  std::unique_ptr<Backend> backend_;
  DeviceRoom room_;
  comm::World world_;
  Sessions sessions_;
};

}  // namespace dstrain::session
