#include "launcher/job/master_address.h"

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/base/socket.h"

namespace dstrain::launcher {
namespace {

constexpr int any_port = 22;

/// An address with a zone ("fe80::1%eth0") means something to one machine only.
bool is_known(const std::string& address) {
  return !address.empty() && address.find('%') == address.npos;
}

}  // namespace

std::string master_address(const std::vector<ReachedHost>& hosts) {
  const ReachedHost& first = hosts.front();
  if (hosts.size() == 1) return "127.0.0.1";
  if (first.remote) return is_known(first.own_address) ? first.own_address : first.host;
  const auto other =
      std::find_if(hosts.begin(), hosts.end(), [](const ReachedHost& host) { return host.remote; });
  if (other == hosts.end()) return "127.0.0.1";
  if (is_known(other->peer_address)) return other->peer_address;
  Result<std::string> address = local_address_towards({other->host, any_port});
  if (!address.ok()) {
    fail(ErrorCode::remote,
         "at which address {} reaches this machine is not known ({}); say it with --master_addr",
         other->host, address.error());
  }
  return address.value();
}

}  // namespace dstrain::launcher
