#include "offload/storage.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#include "runtime/base/error.h"

namespace dstrain::offload {
namespace {

/// f_type of network and cluster file systems: those of statfs(2), and some that it does not list.
constexpr std::array<std::uint32_t, 13> network_types{
    NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC,  CEPH_SUPER_MAGIC,
    AFS_SUPER_MAGIC, V9FS_MAGIC,      FUSE_SUPER_MAGIC, OCFS2_SUPER_MAGIC,
    0x0BD00BD0,  // Lustre
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0x01161970,  // GFS2
};

/// A partition shares its disk's queue. Nothing is known without a block device (btrfs, overlays),
/// nor for a virtual machine's disks, which always claim to rotate.
bool rotates(dev_t device) {
  const std::string folder = fmt::format("/sys/dev/block/{}:{}", major(device), minor(device));
  std::error_code ignored;
  const std::string place = std::filesystem::canonical(folder, ignored).string();
  if (place.find("/virtio") != std::string::npos || place.find("/vbd-") != std::string::npos) {
    return false;
  }
  for (const char* const queue : {"/queue/rotational", "/../queue/rotational"}) {
    int value = 0;
    if (std::ifstream(folder + queue) >> value) return value == 1;
  }
  return false;
}

}  // namespace

StorageKind storage_kind(const std::filesystem::path& directory) {
  struct statfs system {};
  struct stat info {};
  if (::statfs(directory.c_str(), &system) != 0 || ::stat(directory.c_str(), &info) != 0) {
    fail_errno(errno, directory.string());
  }
  const auto type = static_cast<std::uint32_t>(system.f_type);
  if (type == TMPFS_MAGIC || type == RAMFS_MAGIC) return StorageKind::memory;
  if (std::ranges::find(network_types, type) != network_types.end()) return StorageKind::network;
  return rotates(info.st_dev) ? StorageKind::rotating : StorageKind::local;
}

const char* storage_warning(StorageKind kind) noexcept {
  switch (kind) {
    case StorageKind::local:
      return "";
    case StorageKind::rotating:
      return "lies on a disk that rotates, says the system: offloading needs an SSD";
    case StorageKind::network:
      return "lies on a network file system: offloading needs a disk of this machine";
    case StorageKind::memory:
      return "lies in memory: offloading to it saves none";
  }
  return "";
}

}  // namespace dstrain::offload
