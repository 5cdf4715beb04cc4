#pragma once
#include <filesystem>

namespace dstrain::launcher {

/// --save_pid: `<temporary directory>/<pid>.deepspeed` with the launcher's pid, the process to
/// signal; removed at the end. Replaces a leftover file of this user, but not another user's.
class PidFile {
 public:
  /// Throws Error{io} when the file cannot be made, or another user has one of that name.
  PidFile();
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;
  PidFile(PidFile&&) = delete;
  PidFile& operator=(PidFile&&) = delete;
  ~PidFile();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace dstrain::launcher
