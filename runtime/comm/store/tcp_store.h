#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/comm/store.h"
#include "runtime/comm/store/tcp_server.h"
#include "runtime/os/socket.h"

namespace dstrain::comm {

/// Throws `reason`, from listen_tcp(), why rank 0 cannot listen where ranks meet: Error{comm} for a
/// port in use, else Error{remote}.
[[noreturn]] void fail_to_listen(const Failure& reason);

/// The store of a job whose ranks are processes: rank 0 serves it over TCP, all ranks are clients.
/// The job's token guards it. The server listens only on the given address. Without a token, or
/// with one that is not secret, it listens only on loopback, whatever the address, and clients look
/// for it there too; both ends then refuse users other than their own and root.
class TcpStore final : public Store {
 public:
  struct Options {
    Endpoint endpoint;  ///< MASTER_ADDR and MASTER_PORT
    /// The server takes the first free port of this many from the endpoint's on. The others look at
    /// each for a server that knows the token.
    int ports = 1;
    std::string token;             ///< may be empty
    bool loopback_only = false;    ///< also set with a token that is not secret
    double timeout_seconds = 600;  ///< for reaching the server, and for an answer to set and add
  };

  /// Rank 0: serves and uses the store. Throws Error{comm} if the port is in use, Error{remote} if
  /// it cannot listen there at all. Port 0 takes any free port. `listener`: a socket that already
  /// listens at the endpoint.
  static std::unique_ptr<TcpStore> serve(Options options, UniqueFd listener = {});
  /// Other ranks: retries until the server is there. Throws Error{timeout} if it does not come,
  /// Error{comm} if the server at the only port refuses the token or is not a dstrain rendezvous.
  static std::unique_ptr<TcpStore> connect(Options options);

  void set(const std::string& key, std::string_view value) override;
  std::string get(const std::string& key, double timeout_seconds) override;
  std::vector<std::string> gather(const std::string& key,
                                  Member member,
                                  std::string_view value,
                                  double timeout_seconds) override;
  std::int64_t add(const std::string& key, std::int64_t delta, double timeout_seconds) override;

  /// The address where the server listens.
  [[nodiscard]] const Endpoint& endpoint() const noexcept { return options_.endpoint; }

 private:
  explicit TcpStore(Options options);
  UniqueFd idle_connection(Deadline& deadline);
  std::string exchange(const std::vector<std::uint8_t>& frame,
                       Deadline deadline,
                       const std::string& timeout_message);

  Options options_;
  std::unique_ptr<TcpStoreServer> server_;
  std::mutex mutex_;
  std::vector<UniqueFd> idle_;  ///< one connection per call under way: a get blocks no other call
};

}  // namespace dstrain::comm
