#include "launcher/agent/rank_log.h"

#include <cerrno>

#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/os/shared_place.h"

namespace dstrain::launcher {

std::string rank_log_name(const std::string& directory, const std::string& stamp, int rank) {
  const std::string name = fmt::format("{}_rank{}.log", stamp, rank);
  return (std::filesystem::absolute(directory) / name).string();
}

void make_log_directory(const std::filesystem::path& directory) {
  const std::error_code error = make_directories(directory);
  if (!std::filesystem::is_directory(directory)) {
    fail(ErrorCode::usage, "--enable_each_rank_log {}: {}", directory.string(),
         error ? error.message() : "must be a directory, but is a file");
  }
}

RankLog::RankLog(const std::string& path) : fd_(open_to_append(path, Content::keep)) {}

bool RankLog::write_out() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      fd_.reset();
      break;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  buffer_.clear();
  return static_cast<bool>(fd_);
}

bool RankLog::output(OutputStream stream, std::string_view bytes) {
  if (!fd_) return true;
  splitters_[static_cast<std::size_t>(stream)].feed(bytes, [this](std::string_view line) {
    buffer_.append(line);
    buffer_.push_back('\n');
  });
  return write_out();
}

bool RankLog::finish() {
  if (!fd_) return true;
  for (LineSplitter& splitter : splitters_) {
    splitter.finish([this](std::string_view line) {
      buffer_.append(line);
      buffer_.push_back('\n');
    });
  }
  return write_out();
}

}  // namespace dstrain::launcher
