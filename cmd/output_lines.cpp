#include "cmd/output_lines.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/os/file.h"

namespace dstrain::cmd {
namespace {

std::string reason() {
  return std::generic_category().message(errno);
}

bool is_output(std::string_view line) {
  const auto object = nlohmann::json::parse(line, nullptr, false);
  return object.is_object() && object.contains("completion") && object.contains("completion_ids") &&
         object.contains("finish_reason");
}

/// Whether `text` may be the beginning of a line that was not finished.
bool begins_output(std::string_view text) {
  constexpr std::string_view begin = R"({"completion":")";
  const std::size_t count = std::min(text.size(), begin.size());
  return text.substr(0, count) == begin.substr(0, count);
}

}  // namespace

void check_output_place(const std::string& tool, const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path parent =
      fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  std::error_code ignored;
  const char* problem = nullptr;
  if (!fs::is_directory(parent, ignored)) {
    problem = "there is no such directory";
  } else if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    problem = "is not a regular file";
  } else if (::access(fs::exists(path, ignored) ? path.c_str() : parent.c_str(), W_OK) != 0) {
    problem = "cannot be written to";
  }
  if (problem != nullptr) {
    fail(ErrorCode::usage, "{}: --output_file {}: {}", tool, path, problem);
  }
}

std::size_t check_output_lines(const std::string& path, bool resumes, std::size_t lines) {
  if (path.empty()) return 0;
  check_output_place("generate", path);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return 0;
  const std::string text = read_text_file(path, std::numeric_limits<Bytes>::max());
  if (text.empty()) return 0;
  if (!resumes) {
    fail(ErrorCode::usage,
         "generate: --output_file {}: exists; pass --resume to continue it, or remove it", path);
  }
  std::size_t count = 0;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    if (!is_output(std::string_view(text).substr(begin, end - begin))) {
      fail(ErrorCode::input, "{}:{}: not a line that generate has written", path, count + 1);
    }
    ++count;
    begin = end + 1;
  }
  if (!begins_output(std::string_view(text).substr(begin))) {
    fail(ErrorCode::input, "{}:{}: not a line that generate has written", path, count + 1);
  }
  if (count > lines) {
    fail(ErrorCode::input, "{}: has {} lines, and there are {} texts to generate", path, count,
         lines);
  }
  return count;
}

OutputLines::OutputLines(const std::string& path) : path_(path.empty() ? "stdout" : path) {
  if (path.empty()) return;
  file_ = UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file_) fail(ErrorCode::io, "cannot write {}: {}", path_, reason());
  // A line that was not finished is generated again.
  const std::string text = read_text_file(path, std::numeric_limits<Bytes>::max());
  const std::size_t end = text.rfind('\n');
  const auto size = static_cast<off_t>(end == std::string::npos ? 0 : end + 1);
  if (::ftruncate(file_.get(), size) != 0 || ::lseek(file_.get(), size, SEEK_SET) < 0) {
    fail(ErrorCode::io, "cannot write {}: {}", path_, reason());
  }
}

void OutputLines::write(std::string line) {
  line += '\n';
  const int file = file_ ? file_.get() : STDOUT_FILENO;
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(file, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(ErrorCode::io, "cannot write {}: {}", path_, reason());
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace dstrain::cmd
