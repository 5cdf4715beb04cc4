// Checks variables of the shell that change what a job does.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launcher/doctor/checks.h"
#include "launcher/doctor/texts.h"
#include "runtime/base/number.h"
#include "runtime/base/utf8.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr std::array rank_variables{env::rank, env::local_rank, env::world_size,
                                    env::local_world_size};
constexpr std::array hidden_libraries{"libstdc++.so.6",
                                      "libgomp.so.1",
                                      "libdnnl.so." DSTRAIN_DNNL_NUMBER,
                                      "libfmt.so." DSTRAIN_FMT_MAJOR,
                                      "libssh.so.4",
                                      "libspdlog.so." DSTRAIN_SPDLOG_MINOR};

/// "en_US.UTF-8", "C.utf8".
bool is_utf8(std::string_view locale) {
  const std::string name = lower_case(locale);
  return name.find("utf-8") != name.npos || name.find("utf8") != name.npos;
}

std::vector<std::string> rank_variables_in(const Probe& probe) {
  std::vector<std::string> found;
  for (const char* name : rank_variables) {
    if (probe.variable(name)) found.emplace_back(name);
  }
  return found;
}

/// Reports a directory of LD_LIBRARY_PATH that holds a library with a system library's name.
void look_into(const Probe& probe, const std::string& directory, Findings& findings) {
  if (probe.facts(directory).kind != FileFacts::Kind::directory) {
    return findings.note(
        fmt::format("LD_LIBRARY_PATH names {}, which is not a directory", directory));
  }
  for (const char* library : hidden_libraries) {
    const std::string path = fmt::format("{}/{}", directory, library);
    if (probe.facts(path).kind != FileFacts::Kind::file) continue;
    return findings.problem(
        fmt::format("LD_LIBRARY_PATH puts {} before the system's: dstrain may not start", path),
        "unset LD_LIBRARY_PATH (conda deactivate, module unload)");
  }
}

}  // namespace

void check_threads(const Probe& probe, const Question& /*question*/, Findings& findings) {
  if (const auto binding = probe.variable("OMP_PROC_BIND")) {
    findings.note(
        fmt::format("OMP_PROC_BIND={}: the threads of all ranks stay on the same few cores",
                    *binding),
        "unset OMP_PROC_BIND; pass --bind_cores_to_rank to give each rank its own cores");
  }
  const auto text = probe.variable(env::omp_num_threads);
  if (!text) return;
  const auto threads = parse_number<int>(split(*text, ',').front());
  if (!threads || *threads < 1) {
    findings.problem(
        fmt::format("OMP_NUM_THREADS is \"{}\", which is not a number of threads", *text),
        "unset OMP_NUM_THREADS: each rank then takes its share of the cores");
  } else if (*threads == 1 && probe.usable_cores() > 1) {
    findings.problem(fmt::format("OMP_NUM_THREADS=1: each rank computes on one of {} cores",
                                 probe.usable_cores()),
                     "unset OMP_NUM_THREADS: each rank then takes its share of the cores");
  }
}

/// In a shell these variables come from an earlier job, and a new job would read them.
void check_rank_variables(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const std::vector<std::string> left = rank_variables_in(probe);
  if (left.empty()) return;
  findings.problem(
      fmt::format(
          "{} set in this shell: dstraind would wait for the other ranks of a job",
          left.size() == 1 ? left.front() + " is" : fmt::format("{} are", fmt::join(left, ", "))),
      fmt::format("unset {}", fmt::join(left, " ")));
}

void check_starter_variables(const Probe& /*probe*/, const Question& question, Findings& findings) {
  if (question.starter_refusal.empty()) return;
  findings.problem(question.starter_refusal,
                   "if an earlier job left them, start a new shell, or unset them: env | grep -E "
                   "'^(OMPI|PMI|PMIX|MPI|MV2|PALS|JSM|FLUX|SLURM|TORCHELASTIC)_'");
}

/// Only without the variables of ranks: they change how all others are read.
void check_dstrain_variables(const Probe& probe, const Question& /*question*/, Findings& findings) {
  if (!rank_variables_in(probe).empty()) return;
  for (const std::string& refusal : probe.refused_variables()) {
    findings.problem(refusal, "unset it, or set it to a valid value");
  }
}

void check_master_address(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const auto name = probe.variable(env::master_addr);
  if (!name) return;
  const Result<std::vector<std::string>> found = probe.resolve(*name);
  const std::vector<std::string> own = probe.own_addresses();
  const bool here = found.ok() && std::ranges::any_of(found.value(), [&](const std::string& one) {
                      return is_loopback_digits(one) || std::ranges::find(own, one) != own.end();
                    });
  if (here) return findings.ok(fmt::format("MASTER_ADDR={} is this machine", *name));
  findings.problem(
      fmt::format("MASTER_ADDR={} is {}: a dstraind started from this shell looks for rank 0 there",
                  *name, found.ok() ? "another machine" : "an unknown machine"),
      "unset MASTER_ADDR and MASTER_PORT");
}

void check_library_path(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const auto preload = probe.variable("LD_PRELOAD");
  if (preload && !preload->empty()) {
    findings.note(fmt::format("LD_PRELOAD={} is loaded into every rank", *preload),
                  "unset LD_PRELOAD, unless you want it");
  }
  const auto path = probe.variable("LD_LIBRARY_PATH");
  if (!path || path->empty()) return;
  for (const std::string& directory : split(*path, ':')) {
    if (!directory.empty()) look_into(probe, directory, findings);
  }
  if (findings.empty()) findings.ok("LD_LIBRARY_PATH hides no system library");
}

void check_locale(const Probe& probe, const Question& /*question*/, Findings& findings) {
  std::string name;
  for (const char* variable : {"LANG", "LC_CTYPE", "LC_ALL"}) {
    const auto value = probe.variable(variable);
    if (value && !value->empty()) name = *value;
  }
  if (is_utf8(name)) return findings.ok(name);
  findings.note(fmt::format("the locale, \"{}\", is not UTF-8: other programs may garble text that "
                            "dstrain writes",
                            name),
                "export LC_ALL=C.UTF-8");
}

}  // namespace dstrain::launcher::doctor
