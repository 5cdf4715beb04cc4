#include "launcher/hosts/ssh/host_key.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>

#include "runtime/base/error.h"
#include "runtime/base/unique_handle.h"
#include "runtime/os/fd_io.h"

namespace dstrain::launcher {
namespace {

std::string fingerprint(ssh_key key) {
  unsigned char* hash = nullptr;
  std::size_t bytes = 0;
  if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &bytes) != 0) return "?";
  std::string text = take_text(ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, bytes));
  ssh_clean_pubkey_hash(&hash);
  return text;
}

UniqueSshKey server_key(ssh_session session) {
  ssh_key key = nullptr;
  if (ssh_get_server_publickey(session, &key) != SSH_OK) {
    fail(ErrorCode::remote, "the host presents no key: {}", ssh_get_error(session));
  }
  return UniqueSshKey(key);
}

/// The host in the spelling of known_hosts: "name", or "[name]:2222".
std::string known_name(const SshRoute& route) {
  std::string name = route.host;
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return route.port == 22 ? name : fmt::format("[{}]:{}", name, route.port);
}

struct KnownLine {
  std::string place;  ///< file:line
  std::string fingerprint;
};

void free_entry(ssh_knownhosts_entry* entry) {
  ssh_knownhosts_entry_free(entry);
}

/// The first line about this host with another key of the same type, or else of any type.
std::optional<KnownLine> find_other_key(const SshRoute& route, ssh_key shown) {
  std::optional<KnownLine> found;
  for (const ssh_options_e option : {SSH_OPTIONS_KNOWNHOSTS, SSH_OPTIONS_GLOBAL_KNOWNHOSTS}) {
    const std::string file = option_text(route.session.get(), option);
    std::ifstream lines(file);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      ssh_knownhosts_entry* raw = nullptr;
      if (line.empty() || line.front() == '#') continue;
      if (ssh_known_hosts_parse_line(known_name(route).c_str(), line.c_str(), &raw) != SSH_OK) {
        continue;
      }
      const std::unique_ptr<ssh_knownhosts_entry, void (*)(ssh_knownhosts_entry*)> entry(
          raw, free_entry);
      const KnownLine here{fmt::format("{}:{}", file, number), fingerprint(entry->publickey)};
      if (ssh_key_type(entry->publickey) == ssh_key_type(shown)) return here;
      if (!found) found = here;
    }
  }
  return found;
}

/// Appends in one write, so that keys of several hosts do not mix; on its own line.
void append_line(const std::string& file, const std::string& entry) {
  static std::mutex one_at_a_time;
  const std::scoped_lock lock(one_at_a_time);
  const auto folder = std::filesystem::path(file).parent_path();
  if (!folder.empty() && mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    fail_errno(errno, "make " + folder.string());
  }
  const UniqueFd fd(open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) fail_errno(errno, "open " + file);
  struct stat status {};
  std::string line;
  char last = '\n';
  if (fstat(fd.get(), &status) == 0 && status.st_size > 0 &&
      pread(fd.get(), &last, 1, status.st_size - 1) == 1 && last != '\n') {
    line += '\n';
  }
  line += entry;
  write_fully(fd.get(), std::as_bytes(std::span(line)), file);
}

void accept_key(const SshRoute& route) {
  char* entry = nullptr;
  if (ssh_session_export_known_hosts_entry(route.session.get(), &entry) != SSH_OK) {
    fail(ErrorCode::remote, "cannot record the host's key: {}", ssh_get_error(route.session.get()));
  }
  append_line(option_text(route.session.get(), SSH_OPTIONS_KNOWNHOSTS), take_text(entry));
}

/// A command with which a user can compare and accept the key.
std::string client_command(const SshRoute& route, const SshTarget& target) {
  std::string command = "ssh ";
  if (!target.config_file.empty()) command += "-F " + target.config_file + " ";
  if (target.port != 0) command += fmt::format("-p {} ", target.port);
  return command + route.user + "@" + target.host;
}

}  // namespace

void check_host_key(const SshRoute& route, const SshTarget& target) {
  const UniqueSshKey key = server_key(route.session.get());
  const ssh_known_hosts_e known = ssh_session_is_known_server(route.session.get());
  if (known == SSH_KNOWN_HOSTS_OK) return;
  const std::string shown =
      fmt::format("{} {}", ssh_key_type_to_char(ssh_key_type(key.get())), fingerprint(key.get()));
  // Refuses a key that libssh finds to differ, even if we do not find the line.
  const auto other = find_other_key(route, key.get());
  if (other || known == SSH_KNOWN_HOSTS_CHANGED || known == SSH_KNOWN_HOSTS_OTHER) {
    const std::string before = other ? fmt::format("{} has {}", other->place, other->fingerprint)
                                     : "known_hosts has another one";
    fail(ErrorCode::remote,
         "the host's key has CHANGED: it shows {}, but {}; if the host was installed anew, "
         "remove that line (ssh-keygen -R '{}'); if not, someone may be listening in",
         shown, before, known_name(route));
  }
  if (known == SSH_KNOWN_HOSTS_ERROR) {
    fail(ErrorCode::remote, "cannot check the host's key: {}", ssh_get_error(route.session.get()));
  }
  if (!target.accept_new_host_keys && !configuration_accepts_new_keys(target)) {
    fail(ErrorCode::remote,
         "the host's key is not known: it shows {}; compare it and accept it once with \"{}\", or "
         "accept all new keys with --accept_new_host_keys or StrictHostKeyChecking accept-new",
         shown, client_command(route, target));
  }
  accept_key(route);
}

}  // namespace dstrain::launcher
