#include "launcher/process/program_path.h"

#include <cstdlib>

#include <unistd.h>

#include "runtime/base/error.h"

namespace dstrain::launcher {

bool is_executable_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::vector<std::string> all_on_path(const std::string& name) {
  std::vector<std::string> found;
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  while (!name.empty()) {
    const std::size_t end = rest.find(':');
    const std::string_view directory = rest.substr(0, end);
    const auto path = std::filesystem::path(directory.empty() ? "." : directory) / name;
    if (is_executable_file(path)) found.push_back(path.string());
    if (end == rest.npos) break;
    rest.remove_prefix(end + 1);
  }
  return found;
}

std::string find_on_path(const std::string& name) {
  const std::vector<std::string> found = all_on_path(name);
  return found.empty() ? "" : found.front();
}

std::string program_path(const std::string& word) {
  if (word.find('/') != word.npos) return word;
  std::string path = find_on_path(word);
  if (path.empty()) fail(ErrorCode::remote, "{} was not found on PATH", word);
  return path;
}

std::string own_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "/proc/self/exe" : path.string();
}

}  // namespace dstrain::launcher
