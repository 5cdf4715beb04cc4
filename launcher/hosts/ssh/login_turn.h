#pragma once
#include <memory>
#include <string>

#include "launcher/hosts/ssh/connect_timeout.h"

namespace dstrain::launcher {

struct Logins;

/// The turn of a connection to log in at its first hop: the host itself, or what it is reached
/// through. sshd drops connections at random once ten of them have not logged in yet (MaxStartups),
/// so few do that at a time, of all threads of this process. From the connection to the login.
class LoginTurn {
 public:
  /// Waits. Throws Error{timeout} or Error{aborted}.
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
