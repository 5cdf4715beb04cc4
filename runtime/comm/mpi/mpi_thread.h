#pragma once
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "runtime/comm/mpi/mpi_api.h"

namespace dstrain::comm {

/// The thread that enters MPI and leaves it, which must be the same (MPI 3.1, section 12.4.2). MPI
/// waits forever for ranks that have failed: then this thread is detached.
class MpiThread {
 public:
  using StartFunction = decltype(&dstrain_mpi_start_2);

  explicit MpiThread(StartFunction start);
  MpiThread(const MpiThread&) = delete;
  MpiThread& operator=(const MpiThread&) = delete;
  MpiThread(MpiThread&&) = delete;
  MpiThread& operator=(MpiThread&&) = delete;
  /// Detaches the thread unless leave() has been called.
  ~MpiThread();

  /// Waits until MPI has been entered. Returns 0 or MPI's code for the failure; nothing after
  /// `seconds`.
  std::optional<int> wait_until_entered(double seconds);
  /// The functions of MPI; call only after wait_until_entered() returned 0.
  [[nodiscard]] const DstrainMpiApi& api() const { return stay_->api; }
  /// Leaves MPI: waits until all ranks do. At most once, after wait_until_entered() returned 0.
  void leave();

 private:
  struct Stay {
    DstrainMpiApi api{};
    std::promise<int> entered;
    std::promise<void> over;
  };
  /// Shared with the thread, which may outlive this.
  std::shared_ptr<Stay> stay_ = std::make_shared<Stay>();
  std::thread thread_;
};

}  // namespace dstrain::comm
