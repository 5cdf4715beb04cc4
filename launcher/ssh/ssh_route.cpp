#include "launcher/ssh/ssh_route.h"

#include <cctype>

#include "launcher/host_name.h"
#include "launcher/shell_quote.h"
#include "launcher/ssh/configuration.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

/// A command of the configuration with its %h, %p and %r; a jump host, of which libssh makes a
/// command too, is asked for with the same configuration file.
std::string expand_proxy(const SshRoute& route, const SshTarget& target, std::string command) {
  constexpr std::string_view jump = "ssh ";
  const bool is_jump = command.starts_with(jump) && command.find("-W '[%h]:%p'") != command.npos;
  if (is_jump && !target.config_file.empty()) {
    command.insert(jump.size(), "-F " + shell_quote(target.config_file) + " ");
  }
  std::string out;
  for (std::size_t at = 0; at < command.size(); ++at) {
    const char kind = command[at] == '%' && at + 1 < command.size() ? command[++at] : '\0';
    if (kind == '\0') {
      out += command[at];
    } else if (kind == 'h' || kind == 'n') {
      out += kind == 'h' ? route.host : target.host;
    } else if (kind == 'p') {
      out += std::to_string(route.port);
    } else if (kind == 'r') {
      out += route.user;
    } else if (kind == '%') {
      out += '%';
    } else {
      fail(ErrorCode::remote, "ProxyCommand \"{}\": %{} is not known here; {}", command, kind,
           client_remedy);
    }
  }
  return out;
}

/// These come from a file that a shell must not take for anything but words.
void check_words(const SshRoute& route) {
  const auto harmless = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-' ||
           c == '@' || c == '+' || c == '\\';
  };
  bool good = is_host_name(route.host) && !route.user.starts_with('-');
  for (const char c : route.user) good = good && harmless(c);
  if (!good) fail(ErrorCode::remote, "\"{}@{}\" cannot be reached by ssh", route.user, route.host);
}

}  // namespace

SshRoute plan_route(const SshTarget& target) {
  Configuration configuration = read_configuration(target.host, target.config_file);
  SshRoute route;
  route.session = configuration.session;
  route.callbacks = std::make_shared<ssh_callbacks_struct>();
  route.ignored = configuration.ignored;
  route.host = configuration.host;
  ssh_session session = route.session.get();
  ssh_callbacks_init(route.callbacks.get());
  ssh_set_callbacks(session, route.callbacks.get());
  const int strict = 1;  // whatever the configuration says: unknown keys take an option of ours
  set_option(session, SSH_OPTIONS_STRICTHOSTKEYCHECK, &strict);
  if (target.port != 0) {
    const auto port = static_cast<unsigned>(target.port);
    set_option(session, SSH_OPTIONS_PORT, &port);
  }
  unsigned port = 0;
  ssh_options_get_port(session, &port);
  route.port = static_cast<int>(port);
  route.user = option_text(session, SSH_OPTIONS_USER);
  if (route.user.empty()) route.user = own_account().name;
  set_option(session, SSH_OPTIONS_USER, route.user.c_str());
  check_words(route);
  const std::string proxy = option_text(session, SSH_OPTIONS_PROXYCOMMAND);
  if (!proxy.empty()) route.proxy_command = expand_proxy(route, target, proxy);
  set_option(session, SSH_OPTIONS_PROXYCOMMAND, "none");  // we start it, not libssh
  return route;
}

}  // namespace dstrain::launcher
