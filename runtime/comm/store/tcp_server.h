#pragma once
#include <string>
#include <thread>

#include "runtime/base/socket.h"
#include "runtime/base/unique_handle.h"

namespace dstrain::comm {

/// The store's server: one thread that polls. It believes nobody who has not proved the token:
/// such connections are few, hold a few dozen bytes, and are dropped after some seconds.
class TcpStoreServer {
 public:
  /// `listener` as listen_tcp() makes it. `handshake_seconds`: how long a connection may take to
  /// prove the token.
  TcpStoreServer(UniqueFd listener, std::string token, double handshake_seconds = 5);
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
