// Checks files of SSH that keep this user from logging in.
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launcher/doctor/checks.h"
#include "launcher/doctor/texts.h"

namespace dstrain::launcher::doctor {
namespace {

using Kind = FileFacts::Kind;

constexpr std::array key_names{"id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk", "id_ecdsa_sk"};

std::optional<std::string> home(const Probe& probe) {
  const auto path = probe.variable("HOME");
  return path && path->starts_with('/') ? path : std::nullopt;
}

/// In the user's ~/.ssh.
std::string ssh_file(const Probe& probe, const std::string& name) {
  return home(probe).value_or("") + "/.ssh/" + name;
}

bool names_host(const std::string& line, const std::string& host) {
  const std::vector<std::string> words = words_of(line);
  if (words.empty() || words[0].starts_with('#') || words[0].starts_with('@')) return false;
  for (const std::string& name : split(words[0], ',')) {
    if (name == host || name.starts_with("[" + host + "]:")) return true;
    if (name.find_first_of("*?") != name.npos) return true;  // maybe
  }
  return false;
}

bool has_key(const Probe& probe) {
  for (const char* name : key_names) {
    if (probe.facts(ssh_file(probe, name)).kind == Kind::file) return true;
  }
  return false;
}

}  // namespace

void check_ssh_directory(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const auto directory = home(probe);
  if (!directory) {
    return findings.problem("HOME does not name a directory: SSH finds no key and no configuration",
                            "export HOME=/home/USER");
  }
  const std::string keys = *directory + "/.ssh/authorized_keys";
  for (const std::string& path : {*directory, *directory + "/.ssh", keys}) {
    const FileFacts facts = probe.facts(path);
    if (facts.kind == Kind::absent || !facts.others_may_write()) continue;
    findings.problem(fmt::format("other users may write to {}: sshd then refuses all keys", path),
                     fmt::format("chmod go-w {}", path));
  }
  if (findings.empty() && probe.facts(*directory + "/.ssh").kind == Kind::directory) {
    findings.ok(*directory + "/.ssh belongs to this user alone");
  }
}

void check_ssh_keys(const Probe& probe, const Question& question, Findings& findings) {
  for (const char* name : key_names) {
    const std::string path = ssh_file(probe, name);
    const FileFacts facts = probe.facts(path);
    if (facts.kind != Kind::file) continue;
    if (facts.is_open_to_others()) {
      findings.problem(fmt::format("other users may read the private key {}: ssh refuses it", path),
                       fmt::format("chmod 600 {}", path));
    } else {
      findings.ok(path);
    }
  }
  const bool none =
      !has_key(probe) && !probe.variable("SSH_AUTH_SOCK") && !probe.text(ssh_file(probe, "config"));
  if (!question.ssh_hosts.empty() && none) {
    findings.problem("~/.ssh has no key with a usual name, and there is no SSH agent",
                     "ssh-keygen -t ed25519, then ssh-copy-id HOST for each host");
  }
}

void check_ssh_agent(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const auto socket = probe.variable("SSH_AUTH_SOCK");
  if (!socket || socket->empty()) return;
  if (probe.is_served(*socket)) return findings.ok(fmt::format("answers at {}", *socket));
  findings.problem(fmt::format("SSH_AUTH_SOCK names {}, but no agent answers there", *socket),
                   "unset SSH_AUTH_SOCK, or start an agent: eval $(ssh-agent) and ssh-add");
}

void check_ssh_config(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const std::string path = ssh_file(probe, "config");
  const FileFacts facts = probe.facts(path);
  if (facts.kind == Kind::absent) return;
  if (facts.kind != Kind::file || !probe.text(path)) {
    return findings.problem(
        fmt::format("{} cannot be read", path),
        fmt::format("make it a file that this user can read: chmod 600 {}", path));
  }
  const bool strange = facts.owner != probe.user() && facts.owner != 0;
  if (strange || facts.others_may_write()) {
    return findings.problem(
        fmt::format("{} {}: ssh refuses it", path,
                    strange ? "belongs to another user" : "is writable by others"),
        fmt::format("chown $USER {0}; chmod 600 {0}", path));
  }
  findings.ok(path);
}

/// Names may be aliases in a configuration, and hashed lines hide them.
void check_known_hosts(const Probe& probe, const Question& question, Findings& findings) {
  if (question.ssh_hosts.empty() || probe.text(ssh_file(probe, "config"))) return;
  std::vector<std::string> lines = lines_of(probe.text("/etc/ssh/ssh_known_hosts").value_or(""));
  for (std::string& line : lines_of(probe.text(ssh_file(probe, "known_hosts")).value_or(""))) {
    lines.push_back(std::move(line));
  }
  std::vector<std::string> missing;
  for (const std::string& host : question.ssh_hosts) {
    const bool known = std::ranges::any_of(lines, [&](const std::string& line) {
      return line.starts_with("|1|") || names_host(line, host);
    });
    if (!known) missing.push_back(host);
  }
  if (missing.empty()) return findings.ok("the keys of all hosts are known");
  findings.problem(
      fmt::format("no known_hosts file has a key of {}: SSH refuses to connect",
                  fmt::join(missing, ", ")),
      fmt::format("run ssh {} true once by hand, or pass --accept_new_host_keys", missing.front()));
}

}  // namespace dstrain::launcher::doctor
