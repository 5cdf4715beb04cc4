// What keeps SSH from letting this user out, or in.
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
    return findings.problem("HOME names no directory: no key and no configuration is found",
                            "export HOME=/home/USER");
  }
  const std::string keys = *directory + "/.ssh/authorized_keys";
  for (const std::string& path : {*directory, *directory + "/.ssh", keys}) {
    const FileFacts facts = probe.facts(path);
    if (facts.kind == Kind::absent || !facts.others_may_write()) continue;
    findings.problem(
        fmt::format("{} can be written to by others: sshd lets nobody in by a key", path),
        fmt::format("chmod go-w {}", path));
  }
  if (findings.empty() && probe.facts(*directory + "/.ssh").kind == Kind::directory) {
    findings.ok(*directory + "/.ssh is this user's alone");
  }
}

void check_ssh_keys(const Probe& probe, const Question& question, Findings& findings) {
  for (const char* name : key_names) {
    const std::string path = ssh_file(probe, name);
    const FileFacts facts = probe.facts(path);
    if (facts.kind != Kind::file) continue;
    if (facts.is_open_to_others()) {
      findings.problem(fmt::format("the private key {} is open to others: ssh refuses it", path),
                       fmt::format("chmod 600 {}", path));
    } else {
      findings.ok(path);
    }
  }
  const bool none =
      !has_key(probe) && !probe.variable("SSH_AUTH_SOCK") && !probe.text(ssh_file(probe, "config"));
  if (!question.ssh_hosts.empty() && none) {
    findings.problem("there is no key of the usual names in ~/.ssh, and no SSH agent",
                     "ssh-keygen -t ed25519, then ssh-copy-id HOST for each host");
  }
}

void check_ssh_agent(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const auto socket = probe.variable("SSH_AUTH_SOCK");
  if (!socket || socket->empty()) return;
  if (probe.is_served(*socket)) return findings.ok(fmt::format("answers at {}", *socket));
  findings.problem(fmt::format("SSH_AUTH_SOCK names {}, where no agent answers", *socket),
                   "unset SSH_AUTH_SOCK, or start one: eval $(ssh-agent) and ssh-add");
}

void check_ssh_config(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const std::string path = ssh_file(probe, "config");
  const FileFacts facts = probe.facts(path);
  if (facts.kind == Kind::absent) return;
  if (facts.kind != Kind::file || !probe.text(path)) {
    return findings.problem(fmt::format("{} cannot be read", path),
                            fmt::format("make it a file of yours: chmod 600 {}", path));
  }
  const bool strange = facts.owner != probe.user() && facts.owner != 0;
  if (strange || facts.others_may_write()) {
    return findings.problem(
        fmt::format("{} {}: ssh refuses it", path,
                    strange ? "belongs to another user" : "can be written to by others"),
        fmt::format("chown $USER {0}; chmod 600 {0}", path));
  }
  findings.ok(path);
}

/// A name may stand for another in a configuration, and hashed lines tell no name.
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
      fmt::format("no known_hosts has a key of {}: it is refused", fmt::join(missing, ", ")),
      fmt::format("ssh {} true, once, by hand; or --accept_new_host_keys", missing.front()));
}

}  // namespace dstrain::launcher::doctor
