#include "launcher/hosts/ssh/configuration.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include <pwd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launcher/hosts/ssh/library_log.h"
#include "runtime/base/error.h"
#include "runtime/base/fd_io.h"

namespace dstrain::launcher {
namespace {

/// Options that say which connection is meant, or may be trusted.
bool matters(const std::string& option) {
  // A thread that was left behind may come here while the process ends: nothing is destroyed then.
  constexpr std::array<std::string_view, 9> known{
      "addressfamily",  "canonicalizehostname", "certificatefile", "hostbasedauthentication",
      "hostkeyalias",   "identitiesonly",       "pkcs11provider",  "preferredauthentications",
      "revokedhostkeys"};
  std::string lower = option;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::find(known, lower) != known.end();
}

/// libssh takes '%' and '~' in the names of files for more than they are.
std::string escaped(const std::string& path) {
  std::string out = path.starts_with('~') ? "./" : "";
  for (const char c : path) out += c == '%' ? std::string("%%") : std::string(1, c);
  return out;
}

SharedSession make_session(const std::string& name) {
  SharedSession session(ssh_new(), ssh_free);
  if (session == nullptr) fail(ErrorCode::out_of_memory, "no memory for a connection");
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

/// libssh compares the Host lines behind a HostName with that, OpenSSH with the name as it was
/// typed. An answer to HostName, given first, leaves the name as it is.
void keep_name(ssh_session session, const std::string& name) {
  if (name.find(':') != name.npos) return;  // no alias
  const UniqueFd fd(memfd_create("ssh_config", MFD_CLOEXEC));
  if (!fd) fail_errno(errno, "make a file in memory");
  const std::string line = "HostName " + name + "\n";
  write_fully(fd.get(), std::as_bytes(std::span(line)), "ssh_config");
  parse(session, fmt::format("/proc/self/fd/{}", fd.get()));
}

}  // namespace

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

void set_option(ssh_session session, ssh_options_e option, const void* value) {
  if (ssh_options_set(session, option, value) == SSH_OK) return;
  fail(ErrorCode::remote, "libssh does not take option {} ({}); {}", static_cast<int>(option),
       ssh_get_error(session), client_remedy);
}

Configuration read_configuration(const std::string& name, const std::string& file) {
  if (!file.empty() && access(file.c_str(), R_OK) != 0) {
    fail(ErrorCode::remote, "--ssh_config {}: the file cannot be read", file);
  }
  const SharedSession first_look = make_session(name);
  parse(first_look.get(), file);
  Configuration found{make_session(name), option_text(first_look.get(), SSH_OPTIONS_HOST), ""};
  keep_name(found.session.get(), name);
  {
    const LibraryLog log([&](std::string_view line) {
      const std::string_view said = text_after(line, "Unsupported option: ");
      const std::string option(said.substr(0, said.find(',')));
      if (!matters(option) || found.ignored.find(option) != option.npos) return;
      found.ignored += (found.ignored.empty() ? "" : ", ") + option;
    });
    parse(found.session.get(), file);
  }
  const bool is_ipv6 = found.host.find(':') != found.host.npos;
  set_option(found.session.get(), SSH_OPTIONS_HOST,
             (is_ipv6 ? "[" + found.host + "]" : found.host).c_str());
  return found;
}

}  // namespace dstrain::launcher
