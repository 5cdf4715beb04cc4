#pragma once
#include <functional>

namespace dstrain::test {

/// While one lives, `step` is called before each rename, removal and flush of this process, and
/// says with which errno it fails instead; 0: it takes place. A program that links test_file_steps
/// flushes nothing.
class FileSteps {
 public:
  explicit FileSteps(std::function<int()> step);
  FileSteps(const FileSteps&) = delete;
  FileSteps& operator=(const FileSteps&) = delete;
  FileSteps(FileSteps&&) = delete;
  FileSteps& operator=(FileSteps&&) = delete;
  ~FileSteps();
};

}  // namespace dstrain::test
