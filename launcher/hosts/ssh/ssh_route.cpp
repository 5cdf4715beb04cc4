#include "launcher/hosts/ssh/ssh_route.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string_view>

#include <pwd.h>
#include <unistd.h>

#include "launcher/hosts/ssh/library_log.h"
#include "launcher/hosts/ssh/strict_checking.h"
#include "launcher/plan/host_name.h"
#include "launcher/process/pipes.h"
#include "launcher/process/text.h"
#include "runtime/base/error.h"
#include "runtime/os/socket.h"

namespace dstrain::launcher {
namespace {

constexpr const char* client_remedy = "use your ssh client: --ssh_command ssh";

struct Account {
  std::string name;
  std::string home;  ///< $HOME, where that is set
};

Account own_account() {
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found);
  Account account = found != nullptr ? Account{entry.pw_name, entry.pw_dir} : Account{};
  const char* const home = std::getenv("HOME");
  if (home != nullptr && *home == '/') account.home = home;
  return account;
}

/// Throws Error{remote} if libssh rejects the value.
void set_option(ssh_session session, ssh_options_e option, const void* value) {
  if (ssh_options_set(session, option, value) == SSH_OK) return;
  fail(ErrorCode::remote, "libssh rejects option {} ({}); {}", static_cast<int>(option),
       ssh_get_error(session), client_remedy);
}

/// Whether the option says which connection is meant, or which may be trusted.
bool matters(const std::string& option) {
  // constexpr, because a thread that was left behind may run this while the process ends.
  constexpr std::array<std::string_view, 9> known{
      "addressfamily",  "canonicalizehostname", "certificatefile", "hostbasedauthentication",
      "hostkeyalias",   "identitiesonly",       "pkcs11provider",  "preferredauthentications",
      "revokedhostkeys"};
  std::string lower = option;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::find(known, lower) != known.end();
}

/// The condition in a line of libssh's log which says that it ignores a whole Match block, else
/// empty. `Match final` and `canonical`, which it ignores too, are left out: Fedora's own
/// configuration has `Match final all` around its choice of ciphers.
std::string_view unknown_condition(std::string_view line) {
  std::string_view rest = text_after(line, "Unsupported Match keyword '");
  if (!rest.ends_with("ignoring")) rest = text_after(line, "Unknown argument '");
  return rest.substr(0, rest.find('\''));
}

/// Escapes '%' and '~', which libssh would expand in the names of files.
std::string escaped(const std::string& path) {
  std::string out = path.starts_with('~') ? "./" : "";
  for (const char c : path) out += c == '%' ? std::string("%%") : std::string(1, c);
  return out;
}

SharedSession make_session(const std::string& name) {
  SharedSession session(ssh_new(), ssh_free);
  if (session == nullptr) fail(ErrorCode::out_of_memory, "not enough memory for a connection");
  const bool is_ipv6 = name.find(':') != name.npos;
  set_option(session.get(), SSH_OPTIONS_HOST, (is_ipv6 ? "[" + name + "]" : name).c_str());
  set_option(session.get(), SSH_OPTIONS_SSH_DIR, escaped(own_account().home + "/.ssh").c_str());
  return session;
}

void parse(ssh_session session, const std::string& file) {
  const std::string path = escaped(file);
  if (ssh_options_parse_config(session, file.empty() ? nullptr : path.c_str()) == SSH_OK) return;
  fail(ErrorCode::remote, "libssh cannot read the configuration in {} ({}); {}",
       file.empty() ? "~/.ssh/config or /etc/ssh/ssh_config" : file, ssh_get_error(session),
       client_remedy);
}

/// libssh compares the Host lines after a HostName with its value, OpenSSH with the typed name.
/// Setting HostName first keeps the typed name.
void keep_name(ssh_session session, const std::string& name) {
  if (name.find(':') != name.npos) return;  // no alias
  const UniqueFd fd = make_text_file("HostName " + name + "\n");
  parse(session, fmt::format("/proc/self/fd/{}", fd.get()));
}

/// The session, host and ignored options for `name`, from `file` or else the user's and the
/// system's configuration. Throws Error{remote} for a file that cannot be read.
SshRoute read_configuration(const std::string& name, const std::string& file) {
  std::error_code ignored;
  if (!file.empty() &&
      (access(file.c_str(), R_OK) != 0 || !std::filesystem::is_regular_file(file, ignored))) {
    fail(ErrorCode::remote, "--ssh_config {}: cannot read the file", file);
  }
  const SharedSession first_look = make_session(name);
  parse(first_look.get(), file);
  SshRoute found;
  found.session = make_session(name);
  found.host = option_text(first_look.get(), SSH_OPTIONS_HOST);
  keep_name(found.session.get(), name);
  std::string condition;
  {
    const LibraryLog log([&](std::string_view line) {
      if (condition.empty()) condition = unknown_condition(line);
      const std::string_view rest = text_after(line, "Unsupported option: ");
      const std::string option(rest.substr(0, rest.find(',')));
      if (!matters(option) || found.ignored.find(option) != option.npos) return;
      found.ignored += (found.ignored.empty() ? "" : ", ") + option;
    });
    parse(found.session.get(), file);
  }
  if (!condition.empty()) {
    fail(ErrorCode::remote, "libssh ignores \"Match {}\" in the configuration; {}", condition,
         client_remedy);
  }
  const bool is_ipv6 = found.host.find(':') != found.host.npos;
  set_option(found.session.get(), SSH_OPTIONS_HOST,
             (is_ipv6 ? "[" + found.host + "]" : found.host).c_str());
  return found;
}

/// Whether something outside single quotes is special to shells.
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
      fail(ErrorCode::remote, "ProxyCommand: %{} is not supported; {}", kind, client_remedy);
    }
  }
  return out;
}

/// The configuration's command as words, with %h, %p and %r expanded. libssh turns a jump host into
/// a command too; its ssh gets the same configuration file.
std::vector<std::string> proxy_words(const SshRoute& route,
                                     const SshTarget& target,
                                     std::string_view command) {
  if (needs_shell(command)) {
    fail(ErrorCode::remote, "ProxyCommand \"{}\" needs a shell, but dstrain runs none for it; {}",
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

/// Host and user become arguments of a proxy, which must not read them as options.
void check_words(const SshRoute& route) {
  if (is_host_name(route.host) && !route.user.starts_with('-')) return;
  fail(ErrorCode::remote, "\"{}@{}\" cannot be reached by ssh", route.user, route.host);
}

}  // namespace

SshRoute plan_route(const SshTarget& target) {
  SshRoute route = read_configuration(target.host, target.config_file);
  route.callbacks = std::make_shared<ssh_callbacks_struct>();
  ssh_session session = route.session.get();
  ssh_callbacks_init(route.callbacks.get());
  ssh_set_callbacks(session, route.callbacks.get());
  const int strict = 1;  // check_host_key() decides
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
  route.first_hop = proxy.empty() ? to_string(Endpoint{route.host, route.port}) : proxy;
  set_option(session, SSH_OPTIONS_PROXYCOMMAND, "none");  // we start it, not libssh
  return route;
}

bool configuration_accepts_new_keys(const SshTarget& target) {
  const std::filesystem::path own = own_account().home + "/.ssh";
  const std::filesystem::path system = "/etc/ssh";
  StrictCheckingConfig config;
  const SharedSession session = make_session(target.host);
  keep_name(session.get(), target.host);
  const auto add = [&](const std::filesystem::path& file, const std::filesystem::path& beneath) {
    const std::string path = config.rewrite(file, beneath);
    if (!path.empty()) parse(session.get(), path);
  };
  if (target.config_file.empty()) {
    add(own / "config", own);
    add(system / "ssh_config", system);
  } else {
    add(target.config_file, own);
  }
  std::string value = option_text(session.get(), SSH_OPTIONS_PROXYCOMMAND);
  std::erase(value, '"');
  for (char& c : value) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return value == "accept-new" || value == "no" || value == "off";
}

}  // namespace dstrain::launcher
