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

/// Accepts connections and lets in those that prove the token (token_proof.h). Strangers keep
/// nobody out: who has not proved it in time is dropped, of too many who have not the oldest makes
/// room for the next, and none is read further than its proof. Never waits; not thread-safe.
class TokenListener {
 public:
  struct Settings {
    UniqueFd listener;  ///< as listen_tcp() makes it
    Magic magic{};
    std::string token;
    std::string name;                ///< "rendezvous": what a log calls it
    bool own_user_only = false;      ///< and root's: the token is no secret, or empty
    std::size_t unproved_max = 128;  ///< connections that have not proved the token yet
    double proof_seconds = 5;        ///< how long one may take
  };
  explicit TokenListener(Settings settings) : settings_(std::move(settings)) {}

  struct Client {
    std::uint32_t number = 0;
    UniqueFd socket;  ///< non-blocking, without Nagle's delay; what follows the proof is unread
  };
  /// What poll(2) is to wait for, and for how long at most: -1 for ever.
  void add_polls(std::vector<pollfd>& fds);
  [[nodiscard]] int poll_ms() const;
  /// Takes back what add_polls() added, polled. Returns those who have proved the token.
  std::vector<Client> advance(std::span<const pollfd> fds);
  /// Lets nobody in any more.
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
  /// Drops the oldest connection that has proved nothing; false when there is none.
  bool drop_oldest();
  void after_failed_accept(int error);
  Next read(Unproved& unproved);
  Next check(const Unproved& unproved);
  void warn_once(std::string_view kind);

  Settings settings_;
  std::list<Unproved> unproved_;
  std::optional<Deadline> rest_;  ///< until when nobody is accepted
  bool warned_ = false;
};

}  // namespace dstrain
