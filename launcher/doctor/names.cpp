// Checks names, addresses and the port of the rendezvous.
#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launcher/doctor/checks.h"
#include "launcher/doctor/texts.h"
#include "launcher/plan/options.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr int unknown_max = 3;

/// Each name of /etc/hosts with its addresses of one family, in order.
std::map<std::string, std::vector<std::string>> named_addresses(const std::string& text, bool v6) {
  std::map<std::string, std::vector<std::string>> found;
  for (const std::string& line : lines_of(text)) {
    const std::vector<std::string> words = words_of(line.substr(0, line.find('#')));
    if (words.empty() || (words[0].find(':') != std::string::npos) != v6) continue;
    for (std::size_t i = 1; i < words.size(); ++i) {
      std::vector<std::string>& addresses = found[words[i]];
      if (std::ranges::find(addresses, words[0]) == addresses.end()) addresses.push_back(words[0]);
    }
  }
  return found;
}

}  // namespace

void check_host_name(const Probe& probe, const Question& question, Findings& findings) {
  const std::string name = probe.host_name();
  const auto addresses = probe.resolve(name);
  if (!addresses.ok() || addresses.value().empty()) {
    return findings.problem(
        fmt::format("this machine's own name, {}, has no address, which MPI needs", name),
        fmt::format("add a line \"ADDRESS {}\" to /etc/hosts", name));
  }
  const std::string list = fmt::format("{}", fmt::join(addresses.value(), ", "));
  if (!std::ranges::all_of(addresses.value(), is_loopback_digits)) {
    return findings.ok(fmt::format("{} is {}", name, list));
  }
  const std::string what =
      fmt::format("{} is {}, which other hosts would take for themselves", name, list);
  const std::string fix = fmt::format(
      "in /etc/hosts, give {} its address in the network, or pass --master_addr ADDRESS", name);
  return question.hosts.empty() ? findings.note(what, fix) : findings.problem(what, fix);
}

void check_hosts_file(const Probe& probe, const Question& question, Findings& findings) {
  const std::string text = probe.text("/etc/hosts").value_or("");
  std::vector<std::string> wanted{"localhost", probe.host_name()};
  wanted.insert(wanted.end(), question.hosts.begin(), question.hosts.end());
  for (const bool v6 : {false, true}) {
    const auto named = named_addresses(text, v6);
    for (const std::string& name : wanted) {
      const auto found = named.find(name);
      if (found == named.end() || found->second.size() == 1) continue;
      findings.problem(fmt::format("/etc/hosts gives {} several addresses: {}", name,
                                   fmt::join(found->second, ", ")),
                       "keep only the correct line");
    }
    const auto local = named.find("localhost");
    if (local == named.end() || is_loopback_digits(local->second.front())) continue;
    findings.problem(fmt::format("/etc/hosts maps localhost to {}", local->second.front()),
                     "change the line to \"127.0.0.1 localhost\"");
  }
}

void check_host_names(const Probe& probe, const Question& question, Findings& findings) {
  std::vector<std::string> good;
  int unknown = 0;
  for (const std::string& host : question.hosts) {
    const auto addresses = probe.resolve(host);
    // Perhaps an SSH alias: the check that reaches it says more. A dead name server takes seconds.
    if (!addresses.ok() && ++unknown == unknown_max) break;
    if (!addresses.ok()) continue;
    if (!addresses.value().empty() && std::ranges::all_of(addresses.value(), is_loopback_digits)) {
      findings.problem(
          fmt::format("{} is another host, but has the address {} here, which is this machine's",
                      host, addresses.value().front()),
          fmt::format("give {} its address in /etc/hosts or in the name server", host));
    } else {
      good.push_back(host);
    }
  }
  if (!good.empty()) findings.ok(fmt::format("{}", fmt::join(good, ", ")));
}

void check_master_port(const Probe& probe, const Question& /*question*/, Findings& findings) {
  if (probe.port_is_free(default_master_port)) {
    return findings.ok(fmt::format("port {} is free", default_master_port));
  }
  findings.note(
      fmt::format("another job or program uses port {}", default_master_port),
      "none needed: a launch uses the next free port; with --no_ssh, pass --master_port PORT");
}

}  // namespace dstrain::launcher::doctor
