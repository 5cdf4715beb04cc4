#include "runtime/session/offload_disks.h"

#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "runtime/base/units.h"
#include "runtime/os/file.h"

namespace dstrain::session {
namespace {

namespace fs = std::filesystem;

/// What is missing is made by the ranks, as DeepSpeed makes it.
std::string why_unusable(const std::string& directory) {
  const fs::path there = nearest_existing(directory);
  std::error_code ignored;
  const bool whole = fs::exists(directory, ignored);
  const std::string place = whole ? "" : "cannot be made: " + there.string() + " ";
  if (!fs::is_directory(there, ignored)) return place + "is no directory";
  if (::access(there.c_str(), W_OK | X_OK) == 0) return "";
  return place + "cannot be written to: " + std::generic_category().message(errno);
}

/// A directory that ranks swap to, and what they put there when they start.
struct SwapDirectory {
  std::string name;  ///< key and path, for messages
  std::string path;
  std::vector<MemoryCategory> contents;
};

std::vector<SwapDirectory> swap_directories(const config::ZeroSettings& settings) {
  std::vector<SwapDirectory> directories;
  const auto add = [&](const char* section, const config::OffloadSettings& offload,
                       std::vector<MemoryCategory> contents) {
    if (offload.device != config::OffloadSettings::Device::nvme) return;
    directories.push_back(
        {fmt::format("zero_optimization.{}.nvme_path: {}", section, offload.nvme_path),
         offload.nvme_path, std::move(contents)});
  };
  add("offload_optimizer", settings.offload_optimizer,
      {MemoryCategory::optimizer, MemoryCategory::gradients});
  add("offload_param", settings.offload_param, {MemoryCategory::parameters});
  return directories;
}

}  // namespace

std::vector<std::string> unusable_disks(const config::ZeroSettings& settings) {
  std::vector<std::string> lines;
  for (const SwapDirectory& directory : swap_directories(settings)) {
    const std::string reason = why_unusable(directory.path);
    if (reason.empty()) continue;
    lines.push_back(
        fmt::format("{}: {}; give one that every machine with ranks has and may write to",
                    directory.name, reason));
  }
  return lines;
}

std::vector<std::string> full_disks(const config::ZeroSettings& settings,
                                    const zero::MemoryPlan& plan,
                                    int ranks) {
  struct Need {
    std::string name;  ///< of the directories on it
    fs::path path;
    Bytes bytes = 0;
  };
  std::map<dev_t, Need> disks;
  for (const SwapDirectory& directory : swap_directories(settings)) {
    struct stat info {};
    const fs::path there = nearest_existing(directory.path);
    if (::stat(there.c_str(), &info) != 0) continue;
    Need& need = disks[info.st_dev];
    need.name += (need.name.empty() ? "" : " and ") + directory.name;
    need.path = there;
    for (const MemoryCategory category : directory.contents) {
      need.bytes += ranks * plan.of(MemoryTier::nvme, category);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [device, need] : disks) {
    const auto free = static_cast<Bytes>(fs::space(need.path).available);
    if (need.bytes <= free) continue;
    lines.push_back(fmt::format(
        "{}: {} of this machine would need {} there, and {} are free; make "
        "room, or name a directory on another disk",
        need.name, counted(ranks, "rank"), format_bytes(need.bytes), format_bytes(free)));
  }
  return lines;
}

}  // namespace dstrain::session
