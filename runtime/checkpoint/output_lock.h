#pragma once
#include <filesystem>
#include <string>

#include "runtime/base/unique_handle.h"

namespace dstrain::checkpoint {

/// Keeps two jobs out of one output directory. Held by rank 0 while its job writes there: the file
/// OUTPUT_DIR/job.lock, which says whose it is, under a lock (flock) that ends with its process,
/// however that ends. Where a file system knows no such lock, a warning says so.
class OutputLock {
 public:
  /// `job`: the id of the job; empty: it has none. Waits a minute for an earlier start of the same
  /// job, whose host may have been cut off and be about to end its ranks. Throws Error{usage} when
  /// another job writes there, Error{io} when the file cannot be made.
  OutputLock(const std::filesystem::path& directory, const std::string& job);
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;
  OutputLock(OutputLock&&) = delete;
  OutputLock& operator=(OutputLock&&) = delete;
  ~OutputLock();

 private:
  std::filesystem::path path_;
  UniqueFd file_;
};

/// Throws Error{usage} when a job writes to this directory, which need not exist.
void refuse_locked_output(const std::filesystem::path& directory);

}  // namespace dstrain::checkpoint
