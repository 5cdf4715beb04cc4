#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>

#include "runtime/base/deadline.h"
#include "runtime/base/unique_handle.h"
#include "runtime/os/token_proof.h"

namespace dstrain {

/// Accepts connections and admits those that prove the token (token_proof.h). Strangers cannot
/// block others: a connection that has not proved it in time is dropped; if there are too many, the
/// oldest is dropped for the next one; and none is read beyond its proof. Never waits; not
/// thread-safe.
class TokenListener {
 public:
  struct Settings {
    UniqueFd listener;  ///< from listen_tcp()
    Magic magic{};
    std::string token;
    std::string name;                ///< "rendezvous": the name in logs
    bool own_user_only = false;      ///< and root: the token is not secret, or empty
    std::size_t unproved_max = 128;  ///< connections that have not proved the token yet
    double proof_seconds = 5;        ///< for each connection
  };
  explicit TokenListener(Settings settings) : settings_(std::move(settings)) {}

  struct Client {
    std::uint32_t number = 0;
    UniqueFd socket;  ///< non-blocking, without Nagle's delay; bytes after the proof are unread
  };
  /// Adds the events for poll(2). `rest_` limits its time; -1: forever.
  void add_polls(std::vector<pollfd>& fds);
  [[nodiscard]] int poll_ms() const;
  /// Removes the polled entries that add_polls() added. Returns the clients that have proved the
  /// token.
  std::vector<Client> advance(std::span<const pollfd> fds);
  /// Stops accepting connections.
  void close();

 private:
  struct Unproved {
    UniqueFd socket;
    Greeting greeting;
    Deadline deadline = Deadline::after(0);
    std::size_t heard = 0;  ///< bytes of `hello`
    ClientHello hello;
  };
  enum class Next { wait, drop, let_in };
  void accept_all();
  /// Drops the oldest connection without a proof; returns false if there is none.
  bool drop_oldest();
  void after_failed_accept(int error);
  Next read(Unproved& unproved);
  Next check(const Unproved& unproved);
  void warn_once(std::string_view kind);

  Settings settings_;
  std::list<Unproved> unproved_;
  std::optional<Deadline> rest_;  ///< until then, no connection is accepted
  bool warned_ = false;
};

}  // namespace dstrain
