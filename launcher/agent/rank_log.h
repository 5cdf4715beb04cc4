#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "launcher/process/line_splitter.h"
#include "launcher/protocol/protocol.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// `directory`/YYYYmmddHHMMSS_rank`rank`.log
std::string rank_log_name(const std::string& directory, const std::string& stamp, int rank);

/// Creates the directory. Throws Error{usage} when it is a file or cannot be made.
void make_log_directory(const std::filesystem::path& directory);

/// The log file of one rank, with whole lines of both its streams. Not thread-safe.
class RankLog {
 public:
  RankLog() = default;  ///< writes nothing
  /// Throws Error{io}, also if another user has put something else there.
  explicit RankLog(const std::string& path);

  /// False from the moment a write failed (a full disk, say); then nothing more is written.
  bool output(OutputStream stream, std::string_view bytes);
  bool finish();

 private:
  bool write_out();
  UniqueFd fd_;
  LineSplitter splitters_[2];
  std::string buffer_;
};

}  // namespace dstrain::launcher
