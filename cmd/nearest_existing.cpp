#include "cmd/nearest_existing.h"

#include <system_error>

namespace dstrain::cmd {

namespace fs = std::filesystem;

fs::path nearest_existing(const fs::path& path) {
  std::error_code ignored;
  fs::path there = fs::absolute(path, ignored);
  while (there.has_relative_path() &&
         fs::status(there, ignored).type() == fs::file_type::not_found) {
    there = there.parent_path();
  }
  return there;
}

}  // namespace dstrain::cmd
