#include "launcher/doctor/report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "launcher/doctor/checks.h"
#include "runtime/base/units.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr double skew_seconds_max = 1;

/// The heading of a finding.
std::string_view group_of(std::string_view check) {
  for (const Check& one : all_checks()) {
    if (one.name == check) return one.group;
  }
  return "hosts";
}

void compare_clock(HostReport& report) {
  Findings findings("clock");
  const double ahead = report.clock.ahead;
  const double least = std::abs(ahead) - report.clock.doubt;
  const std::string what =
      fmt::format("{:.3f} s {} this machine's, give or take {:.3f} s", std::abs(ahead),
                  ahead < 0 ? "behind" : "ahead of", report.clock.doubt);
  if (least <= skew_seconds_max) {
    findings.ok(what);
  } else {
    findings.problem(fmt::format("its clock is {}: times in logs and of files mislead", what),
                     "apt-get install chrony, on every host");
  }
  report.findings.push_back(findings.list().front());
}

/// A job is as fast as its slowest host, and its plan must fit the smallest.
void compare_machine(const MachineFacts& first, HostReport& report) {
  const MachineFacts& own = report.machine;
  Findings findings("same_hosts");
  if (own.instructions != first.instructions) {
    findings.note(fmt::format(
        "its processor has \"{}\", the first host's \"{}\": results are the same, speeds differ",
        own.instructions, first.instructions));
  }
  if (own.cores != first.cores) {
    findings.note(fmt::format("{} cores, the first host has {}", own.cores, first.cores));
  }
  const Bytes difference = std::abs(own.memory - first.memory);
  if (difference > std::max(own.memory, first.memory) / 10) {
    findings.note(fmt::format("{} of memory, the first host has {}", format_bytes(own.memory),
                              format_bytes(first.memory)));
  }
  for (const Finding& finding : findings.list()) report.findings.push_back(finding);
}

std::string shown_level(Level level) {
  return level == Level::problem ? "PROBLEM" : name_of(level);
}

/// Text from another host goes to a terminal, so this replaces control characters.
std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  return text;
}

std::string host_block(const HostReport& report) {
  std::string text = report.host + "\n";
  std::string_view group;
  for (const Finding& finding : report.findings) {
    const std::string_view own = group_of(finding.check);
    text += fmt::format("  {:<13}{:<20}{:<9}{}\n", own == group ? "" : own, finding.check,
                        shown_level(finding.level), printable(finding.what));
    if (!finding.fix.empty()) text += fmt::format("{:44}fix: {}\n", "", finding.fix);
    group = own;
  }
  return text + "\n";
}

}  // namespace

void compare_hosts(std::vector<HostReport>& reports) {
  for (std::size_t i = 1; i < reports.size(); ++i) {
    if (!reports[i].looked) continue;
    compare_clock(reports[i]);
    if (reports.front().looked) compare_machine(reports.front().machine, reports[i]);
  }
}

int count_problems(const std::vector<HostReport>& reports) {
  std::ptrdiff_t problems = 0;
  for (const HostReport& report : reports) {
    problems += std::ranges::count(report.findings, Level::problem, &Finding::level);
  }
  return static_cast<int>(problems);
}

std::string as_table(const std::vector<HostReport>& reports) {
  std::string text;
  std::int64_t ill = 0;
  for (const HostReport& report : reports) {
    text += host_block(report);
    const bool well = std::ranges::count(report.findings, Level::problem, &Finding::level) == 0;
    ill += well ? 0 : 1;
  }
  const int problems = count_problems(reports);
  if (problems == 0) {
    return text + fmt::format("no problem on {}\n", counted(std::ssize(reports), "host"));
  }
  return text + fmt::format("{} on {}\n", counted(problems, "problem"), counted(ill, "host"));
}

std::string as_json(const std::vector<HostReport>& reports) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const HostReport& report : reports) {
    nlohmann::json findings = nlohmann::json::array();
    for (const Finding& finding : report.findings) {
      findings.push_back({{"check", finding.check},
                          {"level", name_of(finding.level)},
                          {"what", finding.what},
                          {"fix", finding.fix}});
    }
    hosts.push_back({{"host", report.host}, {"findings", std::move(findings)}});
  }
  const nlohmann::json all{{"hosts", std::move(hosts)}, {"problems", count_problems(reports)}};
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace dstrain::launcher::doctor
