#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// Finds StrictHostKeyChecking of an OpenSSH client configuration, which libssh does not offer to
/// read: rewrites the file with the same Host, Match and Include lines and the value as the
/// ProxyCommand, which it does offer.
class StrictCheckingConfig {
 public:
  /// The path of the rewritten file, valid as long as this object; empty if it cannot be read.
  /// `beneath`: the directory of relative Includes.
  std::string rewrite(const std::filesystem::path& file, const std::filesystem::path& beneath);

 private:
  std::string rewrite(const std::filesystem::path& file,
                      const std::filesystem::path& beneath,
                      int depth);
  std::string rewrite_line(const std::string& line,
                           const std::filesystem::path& beneath,
                           int depth);
  std::vector<UniqueFd> files_;
};

}  // namespace dstrain::launcher
