#include "runtime/os/machine_identity.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace dstrain {

std::string boot_id() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id;
}

Digest machine_identity() {
  std::error_code unknown;
  return sha256(boot_id() + std::filesystem::read_symlink("/proc/self/ns/net", unknown).string());
}

}  // namespace dstrain
