#pragma once
#include <filesystem>
#include <string>

#include "runtime/base/unique_handle.h"

namespace dstrain {

/// Prevents two jobs from using one output directory: the file OUTPUT_DIR/job.lock, which names its
/// owner, with locks (F_OFD_SETLK) that end with their processes in any case. A job holds two: its
/// launcher holds one while the job lives, if it sees the directory, and rank 0 holds the other.
/// Warns if a file system does not support such locks.
class OutputLock {
 public:
  enum class Holder { launcher, rank };
  static constexpr const char* file_name = "job.lock";

  /// `job`: the id of the job; empty: none. A rank waits a minute for the rank of an earlier start
  /// of its own job, whose host may have been cut off and still has to end it, and until its host
  /// sees the directory that the launcher's host has made. Throws Error{usage} if another job
  /// writes there, Error{io} if the file cannot be created.
  OutputLock(const std::filesystem::path& directory, Holder holder, const std::string& job);
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;
  OutputLock(OutputLock&&) = delete;
  OutputLock& operator=(OutputLock&&) = delete;
  /// False if the file or its directory was removed or replaced. (An earlier owner may do so at its
  /// own end.)
  [[nodiscard]] bool is_in_place() const;
  /// Removes the file, unless the job's launcher holds it.
  ~OutputLock();

 private:
  std::filesystem::path path_;
  UniqueFd file_;
  bool wrote_ = false;  ///< whether this wrote the contents of the file
};

/// Throws Error{usage} if a job writes to this directory, which need not exist.
void refuse_locked_output(const std::filesystem::path& directory);

}  // namespace dstrain
