#pragma once
#include <string>
#include <thread>

#include "runtime/base/unique_handle.h"
#include "runtime/os/socket.h"

namespace dstrain::comm {

/// The store's server: one polling thread, which serves clients that have proved the token.
class TcpStoreServer {
 public:
  struct Guard {
    std::string token;
    bool own_user_only = false;  ///< as in TokenListener
    double proof_seconds = 5;    ///< how long a connection may take to prove the token
  };
  /// `listener` is from listen_tcp().
  TcpStoreServer(UniqueFd listener, Guard guard);
  TcpStoreServer(const TcpStoreServer&) = delete;
  TcpStoreServer& operator=(const TcpStoreServer&) = delete;
  TcpStoreServer(TcpStoreServer&&) = delete;
  TcpStoreServer& operator=(TcpStoreServer&&) = delete;
  /// Closes all connections.
  ~TcpStoreServer();

  [[nodiscard]] int port() const noexcept { return port_; }

 private:
  int port_;
  UniqueFd stop_;  ///< an eventfd
  std::thread thread_;
};

}  // namespace dstrain::comm
