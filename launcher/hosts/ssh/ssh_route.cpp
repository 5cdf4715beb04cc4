#include "launcher/hosts/ssh/ssh_route.h"

#include "launcher/hosts/ssh/configuration.h"
#include "launcher/plan/host_name.h"
#include "launcher/plan/words.h"
#include "runtime/base/error.h"

namespace dstrain::launcher {
namespace {

/// Whether something outside single quotes has a meaning for shells.
bool needs_shell(std::string_view command) {
  bool quoted = false;
  for (const char c : command) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (!quoted && std::string_view("|&;<>()$`*?~#\n").find(c) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

std::string expand(std::string_view word, const SshRoute& route, const SshTarget& target) {
  std::string out;
  for (std::size_t at = 0; at < word.size(); ++at) {
    const char kind = word[at] == '%' && at + 1 < word.size() ? word[++at] : '\0';
    if (kind == '\0') {
      out += word[at];
    } else if (kind == 'h' || kind == 'n') {
      out += kind == 'h' ? route.host : target.host;
    } else if (kind == 'p') {
      out += std::to_string(route.port);
    } else if (kind == 'r') {
      out += route.user;
    } else if (kind == '%') {
      out += '%';
    } else {
      fail(ErrorCode::remote, "ProxyCommand: %{} is not known here; {}", kind, client_remedy);
    }
  }
  return out;
}

/// The configuration's command as words, with its %h, %p and %r. libssh makes a command of a jump
/// host too; ssh is asked for it with the same configuration file.
std::vector<std::string> proxy_words(const SshRoute& route,
                                     const SshTarget& target,
                                     std::string_view command) {
  if (needs_shell(command)) {
    fail(ErrorCode::remote, "ProxyCommand \"{}\" asks for a shell, which is not run here; {}",
         command, client_remedy);
  }
  const bool is_jump = command.starts_with("ssh ") && command.find("-W '[%h]:%p'") != command.npos;
  Result<std::vector<std::string>> split = split_words(command);
  if (!split.ok()) fail(ErrorCode::remote, "ProxyCommand \"{}\": {}", command, split.error());
  std::vector<std::string> words = std::move(split.value());
  if (words.size() > 1 && words.front() == "exec") words.erase(words.begin());
  for (std::string& word : words) word = expand(word, route, target);
  if (is_jump && !target.config_file.empty()) {
    words.insert(words.begin() + 1, {"-F", target.config_file});
  }
  return words;
}

/// These become arguments of a proxy, which must not take them for options.
void check_words(const SshRoute& route) {
  if (is_host_name(route.host) && !route.user.starts_with('-')) return;
  fail(ErrorCode::remote, "\"{}@{}\" cannot be reached by ssh", route.user, route.host);
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
  if (!proxy.empty()) route.proxy = proxy_words(route, target, proxy);
  set_option(session, SSH_OPTIONS_PROXYCOMMAND, "none");  // we start it, not libssh
  return route;
}

}  // namespace dstrain::launcher
