#pragma once
#include <filesystem>
#include <string>

#include "runtime/base/unique_handle.h"

namespace dstrain {

/// Keeps two jobs out of one output directory: the file OUTPUT_DIR/job.lock, which says whose it
/// is, under locks (F_OFD_SETLK) that end with their processes, however these end. Two are held of
/// a job: one by its launcher for as long as the job lives, if it sees the directory, and one by
/// rank 0. Where a file system knows no such locks, a warning says so.
class OutputLock {
 public:
  enum class Holder { launcher, rank };
  static constexpr const char* file_name = "job.lock";

  /// `job`: the id of the job; empty: it has none. A rank waits a minute for the rank of an earlier
  /// start of its own job, whose host may have been cut off and be about to end it, and until its
  /// host sees the directory, which that of the launcher has made. Throws Error{usage} when another
  /// job writes there, Error{io} when the file cannot be made.
  OutputLock(const std::filesystem::path& directory, Holder holder, const std::string& job);
  OutputLock(const OutputLock&) = delete;
  OutputLock& operator=(const OutputLock&) = delete;
  OutputLock(OutputLock&&) = delete;
  OutputLock& operator=(OutputLock&&) = delete;
  /// False once somebody has removed the file or its directory, or put another in its place. (An
  /// earlier owner may do so at its own end.)
  [[nodiscard]] bool is_in_place() const;
  /// Removes the file, unless the job's launcher holds it.
  ~OutputLock();

 private:
  std::filesystem::path path_;
  UniqueFd file_;
  bool wrote_ = false;  ///< what the file says
};

/// Throws Error{usage} when a job writes to this directory, which need not exist.
void refuse_locked_output(const std::filesystem::path& directory);

}  // namespace dstrain
