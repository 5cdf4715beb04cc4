#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/unique_handle.h"

namespace dstrain::launcher {

/// What an OpenSSH client configuration says of StrictHostKeyChecking, of which libssh keeps
/// nothing that could be asked for: the same Host, Match and Include lines with the value as the
/// ProxyCommand, which can.
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
