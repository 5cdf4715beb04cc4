// The part of MachineProbe that measures disks.
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <system_error>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "launcher/doctor/machine_probe.h"
#include "runtime/base/clock.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr std::size_t block_bytes = 4U << 20;
constexpr std::size_t alignment = 4096;
constexpr Bytes written_bytes_max = 64 * mebibyte;
constexpr double measured_seconds = 0.3;

struct FileSystem {
  long magic;
  const char* name;
};

constexpr std::array file_systems{
    FileSystem{EXT4_SUPER_MAGIC, "ext4"},   FileSystem{XFS_SUPER_MAGIC, "xfs"},
    FileSystem{BTRFS_SUPER_MAGIC, "btrfs"}, FileSystem{TMPFS_MAGIC, "tmpfs"},
    FileSystem{RAMFS_MAGIC, "tmpfs"},       FileSystem{OVERLAYFS_SUPER_MAGIC, "overlay"},
    FileSystem{NFS_SUPER_MAGIC, "nfs"},     FileSystem{SMB_SUPER_MAGIC, "smb"},
    FileSystem{0x0BD00BD0, "lustre"},       FileSystem{0x65735546, "fuse"},
    FileSystem{0x2FC12FC1, "zfs"}};

/// Opens a file without a name; if that is not supported, one that loses its name at once.
UniqueFd open_unnamed(const std::string& directory) {
  UniqueFd file(::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_DIRECT | O_CLOEXEC, 0600));
  if (file || (errno != EOPNOTSUPP && errno != EISDIR)) return file;
  std::string path = directory + "/dstrain-doctor-XXXXXX";
  file = UniqueFd(::mkostemp(path.data(), O_DIRECT | O_CLOEXEC));
  if (file) ::unlink(path.c_str());
  return file;
}

}  // namespace

std::optional<DiskSpace> MachineProbe::space(const std::string& path) const {
  struct statvfs volume {};
  struct statfs system {};
  const std::string full = settings_.root + path;
  if (::statvfs(full.c_str(), &volume) != 0 || ::statfs(full.c_str(), &system) != 0) return {};
  DiskSpace space;
  space.size = static_cast<Bytes>(volume.f_blocks) * static_cast<Bytes>(volume.f_frsize);
  space.free = static_cast<Bytes>(volume.f_bavail) * static_cast<Bytes>(volume.f_frsize);
  space.read_only = (volume.f_flag & ST_RDONLY) != 0;
  space.kind = "another file system";
  for (const FileSystem& known : file_systems) {
    if (known.magic == static_cast<long>(system.f_type)) space.kind = known.name;
  }
  return space;
}

Result<double> MachineProbe::write_rate(const std::string& directory) const {
  const auto reason = [] {
    return Failure{std::generic_category().message(errno)};
  };
  const UniqueFd file = open_unnamed(settings_.root + directory);
  if (!file)
    return errno == EINVAL ? Failure{"this file system does not support O_DIRECT"} : reason();
  const std::unique_ptr<void, void (*)(void*)> block(std::aligned_alloc(alignment, block_bytes),
                                                     std::free);
  std::fill_n(static_cast<char*>(block.get()), block_bytes,
              'd');  // not zeros, which a disk may skip
  const SteadyClock clock;
  const double begin = clock.now_seconds();
  Bytes written = 0;
  while (written < written_bytes_max && clock.now_seconds() - begin < measured_seconds) {
    const ssize_t put = ::pwrite(file.get(), block.get(), block_bytes, written);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return reason();
    written += put;
  }
  return static_cast<double>(written) / (clock.now_seconds() - begin);
}

}  // namespace dstrain::launcher::doctor
