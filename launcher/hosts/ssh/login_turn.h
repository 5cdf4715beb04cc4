#pragma once
#include <memory>
#include <string>

#include "launcher/hosts/ssh/connect_timeout.h"

namespace dstrain::launcher {

struct Logins;

/// Limits how many connections of this process log in at one first hop (the host itself, or its
/// proxy) at a time, because sshd drops connections at random once ten of them have not logged in
/// yet (MaxStartups). Held from the connection to the login.
class LoginTurn {
 public:
  /// Waits for the turn. Throws Error{timeout} or Error{aborted}.
  LoginTurn(std::string first_hop, const ConnectTimeout& timeout);
  LoginTurn(const LoginTurn&) = delete;
  LoginTurn& operator=(const LoginTurn&) = delete;
  LoginTurn(LoginTurn&&) = delete;
  LoginTurn& operator=(LoginTurn&&) = delete;
  ~LoginTurn();

 private:
  std::shared_ptr<Logins> all_;  ///< a thread may be left behind when the process ends
  std::string first_hop_;
};

}  // namespace dstrain::launcher
