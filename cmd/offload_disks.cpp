#include "cmd/offload_disks.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <unistd.h>

#include <fmt/format.h>

namespace dstrain::cmd {
namespace {

std::string why_unusable(const std::string& directory) {
  std::error_code ignored;
  const std::filesystem::file_type type = std::filesystem::status(directory, ignored).type();
  if (type == std::filesystem::file_type::not_found) return "there is no such directory";
  if (type != std::filesystem::file_type::directory) return "is no directory";
  if (::access(directory.c_str(), W_OK | X_OK) == 0) return "";
  return "cannot be written to: " + std::generic_category().message(errno);
}

}  // namespace

std::vector<std::string> unusable_disks(const config::ZeroSettings& settings) {
  const struct {
    const char* section;
    const config::OffloadSettings& offload;
  } parts[] = {{"offload_optimizer", settings.offload_optimizer},
               {"offload_param", settings.offload_param}};
  std::vector<std::string> lines;
  for (const auto& [section, offload] : parts) {
    if (offload.device != config::OffloadSettings::Device::nvme) continue;
    const std::string reason = why_unusable(offload.nvme_path);
    if (reason.empty()) continue;
    lines.push_back(
        fmt::format("zero_optimization.{}.nvme_path: {}: {}; make it on every machine that runs "
                    "ranks, or name a directory on another disk",
                    section, offload.nvme_path, reason));
  }
  return lines;
}

}  // namespace dstrain::cmd
