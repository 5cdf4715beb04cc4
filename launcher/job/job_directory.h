#pragma once
#include <string>
#include <vector>

#include "runtime/base/deadline.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// The directory of the sockets of one user's launchers: $XDG_RUNTIME_DIR/dstrain, or
/// /tmp/dstrain-UID. It must belong to this user alone; if another user has the name, "-" and a
/// random number follow it (own_directory()).
class JobDirectory {
 public:
  /// Opens the first usable one, created if missing. Throws Error{io}.
  static JobDirectory make();
  /// Those that exist and are this user's alone.
  static std::vector<JobDirectory> find_all();

  /// Listens on the socket of a job, which appears under its name once it does. Throws Error{io}.
  [[nodiscard]] UniqueFd listen(const std::string& job) const;
  void remove(const std::string& job) const noexcept;
  /// A connection to the launcher of a job; none when it does not run, or is too busy until the
  /// deadline. Removes the socket of a dead launcher.
  [[nodiscard]] UniqueFd connect(const std::string& job, Deadline deadline) const;
  /// The names of the sockets: jobs that run, or did.
  [[nodiscard]] std::vector<std::string> jobs() const;

 private:
  explicit JobDirectory(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

}  // namespace dstrain::launcher
