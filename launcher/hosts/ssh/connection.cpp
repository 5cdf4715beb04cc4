#include "launcher/hosts/ssh/connection.h"

#include <algorithm>
#include <random>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fmt/ranges.h>

#include "launcher/hosts/ssh/authentication.h"
#include "launcher/hosts/ssh/host_key.h"
#include "launcher/hosts/ssh/login_turn.h"
#include "runtime/base/error.h"
#include "runtime/base/units.h"
#include "runtime/os/socket.h"

namespace dstrain::launcher {
namespace {

constexpr int idle_seconds = 15;                     // of a connection, before the kernel probes it
constexpr int probe_seconds = 5;                     // between two probes
constexpr int probes = 3;                            // without an answer
constexpr int unacknowledged_milliseconds = 30'000;  // what was sent
constexpr double first_pause_seconds = 0.2;          // after a connection that was dropped
constexpr double longest_pause_seconds = 2;

/// Makes the kernel notice a host that vanishes, even when nothing is sent.
void watch_peer(int socket) {
  const auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, idle_seconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, probe_seconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, probes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, unacknowledged_milliseconds);
}

struct Preparation {
  SshRoute route;
  std::unique_ptr<LoginTurn> turn;
  Result<UniqueFd> socket = Failure{};
};

/// Runs what may wait for name servers, network file systems and commands of the configuration.
std::shared_ptr<Preparation> prepare(const SshTarget& target, const ConnectTimeout& timeout) {
  auto prepared = std::make_shared<Preparation>();
  run_apart(timeout, "a connection", [prepared, target, timeout] {
    prepared->route = plan_route(target);
    const SshRoute& route = prepared->route;
    prepared->turn = std::make_unique<LoginTurn>(route.first_hop, timeout);
    if (!route.proxy.empty()) return;
    prepared->socket = connect_tcp({route.host, route.port}, timeout.deadline);
  });
  return prepared;
}

[[noreturn]] void unreachable(const SshRoute& route, const std::string& reason) {
  const std::string where = to_string({route.host, route.port});
  if (reason.find("resolve") != reason.npos) {
    fail(ErrorCode::remote,
         "{}; correct the hostfile, or give the address in ssh_config (HostName, with brackets for "
         "IPv6) or /etc/hosts",
         reason);
  }
  if (reason.find("refused") != reason.npos) {
    fail(ErrorCode::remote,
         "{} at {}; does sshd run there on that port? (--ssh_port, or Port in ssh_config)", reason,
         where);
  }
  fail(ErrorCode::remote, "{} at {}; is the host up, and does a firewall let ssh through?", reason,
       where);
}

/// Whether the host hung up before sending anything, as sshd does when too many log in at once.
bool was_dropped(const SshConnection& connection) {
  ssh_session session = connection.route.session.get();
  const std::string_view error = ssh_get_error(session);
  if (ssh_get_serverbanner(session) != nullptr || error.find("banner") != error.npos) return false;
  const std::string said = connection.proxy ? connection.proxy->last_error_line() : "";
  return said.empty() || said.find("kex_exchange_identification") != said.npos ||
         said.find("MaxStartups") != said.npos;
}

/// Returns false if the connection was dropped, to try again.
bool exchange_keys(const SshConnection& connection, const ConnectTimeout& timeout) {
  ssh_session session = connection.route.session.get();
  for (;;) {
    const int result = ssh_connect(session);
    if (result == SSH_OK) return true;
    if (result != SSH_AGAIN) break;
    wait_for_session(session, timeout, "the host to speak SSH");
  }
  if (was_dropped(connection)) return false;
  fail(ErrorCode::remote, "cannot speak SSH with {}: {}; is that port sshd's?",
       to_string({connection.route.host, connection.route.port}), ssh_get_error(session));
}

[[noreturn]] void fail_dropped(const SshRoute& route, int attempts) {
  fail(ErrorCode::remote,
       "{} hung up {} before speaking SSH; is that port sshd's? sshd hangs up while more clients "
       "log in than its MaxStartups allows (10 at once by default; raise it there), and since "
       "OpenSSH 9.8 also for a while after failed logins",
       to_string({route.host, route.port}), counted(attempts, "time"));
}

/// A proxy's own error says more than the silence behind it.
[[noreturn]] void fail_of_proxy(const SshConnection& connection, const Error& error) {
  const std::string reason = connection.proxy ? connection.proxy->last_error_line() : "";
  if (reason.empty() && (!connection.proxy || error.code() != ErrorCode::timeout)) throw error;
  if (reason.empty()) {
    fail(error.code(), "{}, through a jump host or proxy that printed nothing; try it by hand: {}",
         error.what(), fmt::join(connection.route.proxy, " "));
  }
  fail(error.code(),
       "its jump host or proxy refuses the connection; ProxyCommand or ProxyJump printed: {}",
       reason);
}

void open_socket(SshConnection& connection, Preparation& prepared) {
  const SshRoute& route = connection.route;
  UniqueFd socket;
  if (!route.proxy.empty()) {
    connection.proxy = std::make_unique<ProxyProcess>(route.proxy);
    socket = connection.proxy->take_connection();
  } else {
    if (!prepared.socket.ok()) unreachable(route, prepared.socket.error());
    socket = std::move(prepared.socket.value());
    watch_peer(socket.get());
  }
  const int fd = socket.detach();  // libssh closes it
  ssh_options_set(route.session.get(), SSH_OPTIONS_FD, &fd);
  ssh_set_blocking(route.session.get(), 0);
}

/// Calls `call` until libssh has done it.
template <class Call>
void until_done(const SshConnection& connection,
                ssh_channel channel,
                const ConnectTimeout& timeout,
                Call&& call) {
  ssh_session session = connection.route.session.get();
  int result = SSH_AGAIN;
  while (channel != nullptr && (result = call()) == SSH_AGAIN) {
    wait_for_session(session, timeout, "the remote command to start");
  }
  if (result == SSH_OK) return;
  fail(ErrorCode::remote, "the host does not run commands for {}: {}", connection.route.user,
       ssh_get_error(session));
}

}  // namespace

SshConnection connect_ssh(const SshTarget& target, const ConnectTimeout& timeout) {
  std::minstd_rand random{std::random_device{}()};
  double pause = first_pause_seconds;
  for (int attempts = 1;; ++attempts) {
    const auto prepared = prepare(target, timeout);
    SshConnection connection{nullptr, prepared->route};
    open_socket(connection, *prepared);
    bool speaks = false;
    try {
      speaks = exchange_keys(connection, timeout);
    } catch (const Error& error) {
      fail_of_proxy(connection, error);
    }
    if (speaks) {
      check_host_key(connection.route, target);
      authenticate(connection.route, timeout);
      return connection;
    }
    prepared->turn.reset();
    // A random pause, so that connections that were dropped together do not retry together.
    const double seconds = std::uniform_real_distribution(0.5, 1.5)(random) * pause;
    if (timeout.deadline.remaining_seconds() <= seconds) fail_dropped(connection.route, attempts);
    rest(timeout, seconds, "the host to speak SSH");
    pause = std::min(2 * pause, longest_pause_seconds);
  }
}

ssh_channel open_channel(const SshConnection& connection, const ConnectTimeout& timeout) {
  ssh_channel channel = ssh_channel_new(connection.route.session.get());
  until_done(connection, channel, timeout, [&] { return ssh_channel_open_session(channel); });
  return channel;
}

void start_command(const SshConnection& connection,
                   ssh_channel channel,
                   const std::string& command,
                   const ConnectTimeout& timeout) {
  until_done(connection, channel, timeout,
             [&] { return ssh_channel_request_exec(channel, command.c_str()); });
}

}  // namespace dstrain::launcher
