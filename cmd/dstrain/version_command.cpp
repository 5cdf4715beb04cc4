#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

#include "cmd/dstrain/commands.h"
#include "launcher/doctor/checks.h"
#include "launcher/doctor/machine_probe.h"

namespace dstrain::cmd {
namespace {

namespace doctor = launcher::doctor;

/// Checks of the doctor whose findings say what has been built and what of it is usable here.
constexpr std::array<std::string_view, 5> shown{"programs", "plug_ins", "libraries", "processor",
                                                "gpus"};

void print_row(std::string_view name, std::string_view value) {
  fmt::print("  {:<10} {}\n", name, value);
}

}  // namespace

void print_version(bool verbose) {
  fmt::print("dstrain {}\n", DSTRAIN_VERSION);
  if (!verbose) return;
  const std::string_view commit = built_commit();
  print_row("commit", commit.empty() ? "unknown: not built in a git repository" : commit);
  print_row("compiler", DSTRAIN_COMPILER);
  const doctor::MachineProbe probe({.version = DSTRAIN_VERSION, .working_directory = "/"});
  for (const doctor::Check& check : doctor::all_checks()) {
    if (std::ranges::find(shown, check.name) == shown.end()) continue;
    doctor::Findings findings{std::string(check.name)};
    check.look(probe, {}, findings);
    for (const doctor::Finding& finding : findings.list()) print_row(check.name, finding.what);
  }
}

}  // namespace dstrain::cmd
