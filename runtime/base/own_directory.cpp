#include "runtime/base/own_directory.h"

#include <algorithm>
#include <cerrno>

#include <sys/stat.h>

#include "runtime/base/error.h"
#include "runtime/base/random_bytes.h"
#include "runtime/base/shared_place.h"

namespace dstrain {
namespace {

namespace fs = std::filesystem;

/// Why it is not; empty: it is.
std::string foreign_because(const fs::path& path) {
  try {
    open_own_directory(path);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::vector<fs::path> own_directories(const fs::path& directory, const std::string& name) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string other = entry.path().filename().string();
    if (other != name && !other.starts_with(name + "-")) continue;
    if (foreign_because(entry.path()).empty()) found.push_back(entry.path());
  }
  std::ranges::sort(found);
  return found;
}

fs::path own_directory(const fs::path& directory, const std::string& name) {
  fs::path usual = directory / name;
  if (::mkdir(usual.c_str(), S_IRWXU) == 0) return usual;
  if (errno != EEXIST) fail_errno(errno, "mkdir " + usual.string());
  if (const auto found = own_directories(directory, name); !found.empty()) return found.front();
  const fs::path other = usual.string() + "-" + to_hex(random_bytes<8>());
  if (::mkdir(other.c_str(), S_IRWXU) != 0) fail_errno(errno, "mkdir " + other.string());
  const auto found = own_directories(directory, name);  // the first may be another process's
  return found.empty() ? other : found.front();
}

}  // namespace dstrain
