#include "runtime/checkpoint/directory_check.h"

#include <algorithm>
#include <set>
#include <system_error>

#include <fmt/format.h>

namespace dstrain::checkpoint {
namespace {

namespace fs = std::filesystem;

/// The directories that the files of a manifest lie in.
std::set<std::string> directories_of(const Manifest& manifest) {
  std::set<std::string> directories;
  for (const FileRecord& file : manifest.files) {
    for (std::size_t end = file.path.find('/'); end != std::string::npos;
         end = file.path.find('/', end + 1)) {
      directories.insert(file.path.substr(0, end));
    }
  }
  return directories;
}

}  // namespace

std::vector<std::string> find_extras(const fs::path& directory, const Manifest& manifest) {
  std::vector<std::string> extras;
  const std::set<std::string> directories = directories_of(manifest);
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().lexically_relative(directory).string();
    if (entry->symlink_status(error).type() == fs::file_type::directory) {
      if (directories.contains(path)) continue;
      entry.disable_recursion_pending();
      extras.push_back(
          fmt::format("{}: a directory that is not in the manifest", entry->path().string()));
    } else if (path != manifest_name &&
               !std::ranges::binary_search(manifest.files, path, {}, &FileRecord::path)) {
      extras.push_back(fmt::format("{}: not in the manifest", entry->path().string()));
    }
  }
  if (error) extras.push_back(fmt::format("{}: {}", directory.string(), error.message()));
  std::ranges::sort(extras);
  return extras;
}

}  // namespace dstrain::checkpoint
