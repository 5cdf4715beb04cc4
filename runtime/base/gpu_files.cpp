#include "runtime/base/gpu_files.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/base/worker_env.h"

namespace dstrain {

int count_gpu_files() {
  const char* const typed = std::getenv(env::gpu_directory);
  std::error_code absent;
  const std::filesystem::directory_iterator files(typed != nullptr ? typed : "/dev", absent);
  // Not from 0 on: a container may have some of a machine's GPUs, by their own numbers.
  return static_cast<int>(std::count_if(begin(files), end(files), [](const auto& file) {
    const std::string name = file.path().filename().string();
    constexpr std::string_view prefix = "nvidia";
    return name.starts_with(prefix) && name.size() > prefix.size() &&
           name.find_first_not_of("0123456789", prefix.size()) == name.npos;
  }));
}

int count_visible_gpu_files() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const bool hidden = visible != nullptr && (*visible == 0 || std::string_view(visible) == "-1");
  return hidden ? 0 : count_gpu_files();
}

}  // namespace dstrain
