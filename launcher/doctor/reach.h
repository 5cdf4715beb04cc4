#pragma once
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "launcher/doctor/host_messages.h"
#include "runtime/base/unique_handle.h"
#include "runtime/rank/port_range.h"

namespace dstrain::launcher::doctor {

/// Listens on a free port of this host, within the range if one is given. Its thread sends the
/// nonce to each connection and closes it.
class Listener {
 public:
  Listener(const std::string& address, const std::optional<PortRange>& ports);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  Listener(Listener&&) = delete;
  Listener& operator=(Listener&&) = delete;
  ~Listener();

  [[nodiscard]] int port() const { return port_; }  ///< 0: there is none
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] const std::string& nonce() const { return nonce_; }

 private:
  void serve() const;

  UniqueFd socket_;
  UniqueFd stop_;
  int port_ = 0;
  std::string failure_;
  std::string nonce_;
  std::thread thread_;
};

struct Unreached {
  std::string host;
  std::string reason;
};

/// Connects to all, several at a time and for two seconds each, and compares their nonces.
std::vector<Unreached> reach_all(const std::vector<Peer>& peers);

}  // namespace dstrain::launcher::doctor
