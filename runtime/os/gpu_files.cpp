#include "runtime/os/gpu_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/os/visible_gpus.h"

namespace dstrain {

bool is_gpu_file(std::string_view name) {
  constexpr std::string_view prefix = "nvidia";
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789", prefix.size()) == name.npos;
}

int count_gpu_files() {
  const char* const typed = std::getenv(env::gpu_directory);
  std::error_code absent;
  const std::filesystem::directory_iterator files(typed != nullptr ? typed : "/dev", absent);
  // Numbers need not start at 0: a container may have some of a machine's GPUs, with their own
  // numbers.
  return static_cast<int>(std::count_if(begin(files), end(files), [](const auto& file) {
    return is_gpu_file(file.path().filename().string());
  }));
}

int count_visible_gpu_files() {
  const int files = count_gpu_files();
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (files == 0 || list == nullptr) return files;
  const Result<std::vector<std::string>> shown = visible_gpus(list, files);
  if (!shown.ok()) fail(ErrorCode::usage, "{}", shown.error());
  return static_cast<int>(shown.value().size());
}

void check_visible_gpus() {
  const char* const list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (list == nullptr) return;
  const Result<std::vector<std::string>> shown = visible_gpus(list, count_gpu_files());
  if (!shown.ok()) fail(ErrorCode::usage, "{}", shown.error());
}

}  // namespace dstrain
