#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

#include "runtime/base/error.h"

namespace dstrain::test {

/// A new empty directory, removed with all it holds at the end of the scope.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dstrain-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) fail_errno(errno, "mkdtemp " + pattern);
    path_ = pattern;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  TempDir(TempDir&&) = delete;
  TempDir& operator=(TempDir&&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace dstrain::test
