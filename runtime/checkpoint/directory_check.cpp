#include "runtime/checkpoint/directory_check.h"

#include <algorithm>
#include <set>
#include <system_error>

#include "runtime/base/error.h"

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

std::vector<std::string> find_foreign(const fs::path& directory, const Manifest& manifest) {
  std::vector<std::string> foreign;
  const std::set<std::string> directories = directories_of(manifest);
  std::error_code error;
  fs::recursive_directory_iterator entry(directory, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().lexically_relative(directory).string();
    if (entry->symlink_status(error).type() == fs::file_type::directory) {
      if (directories.contains(path)) continue;
      entry.disable_recursion_pending();
      foreign.push_back(path + "/");
    } else if (path != manifest_name &&
               !std::ranges::binary_search(manifest.files, path, {}, &FileRecord::path)) {
      foreign.push_back(path);
    }
  }
  if (error) fail(ErrorCode::input, "{}: {}", directory.string(), error.message());
  std::ranges::sort(foreign);
  return foreign;
}

}  // namespace dstrain::checkpoint
