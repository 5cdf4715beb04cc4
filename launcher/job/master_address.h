#pragma once
#include <string>
#include <vector>

namespace dstrain::launcher {

/// A host of a job, as far as the choice of the master's address goes.
struct ReachedHost {
  std::string host;
  bool remote = false;
  std::string own_address;   ///< as in Hello
  std::string peer_address;  ///< as in Hello
};

/// Where all ranks can reach the first host, that of rank 0: loopback when it is the only one; the
/// address at which the launcher reached it; or the address of this machine as the first other host
/// sees it. Throws Error{remote} when that cannot be told.
std::string master_address(const std::vector<ReachedHost>& hosts);

}  // namespace dstrain::launcher
