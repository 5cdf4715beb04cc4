// Checks what is installed beside dstrain, and whether it loads.
#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launcher/doctor/checks.h"
#include "launcher/process/text.h"
#include "runtime/os/plug_in.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher::doctor {
namespace {

struct Library {
  const char* name;
  const char* soname;
  const char* package;
  const char* use;
};

constexpr std::array own_libraries{
    Library{"oneDNN", "libdnnl.so." DSTRAIN_DNNL_NUMBER, "libdnnl" DSTRAIN_DNNL_NUMBER,
            "matrix products of dstraind"},
    Library{"OpenMP", "libgomp.so.1", "libgomp1", "the threads of a rank"},
    Library{"libssh", "libssh.so.4", "libssh-4", "launching on other hosts"},
    Library{"hwloc", "libhwloc.so.15", "libhwloc15", "--bind_cores_to_rank"},
    Library{"libdw", "libdw.so.1", "libdw1", "stacks of ranks that hang"},
};

/// The package with the libraries that a plug-in needs.
std::string_view package_of(std::string_view plug_in) {
  if (plug_in.find("ssh") != plug_in.npos) return "libssh-4";
  if (plug_in.find("stacks") != plug_in.npos) return "libdw1";
  if (plug_in.find("tokenizers") != plug_in.npos) {
    return "libicu" DSTRAIN_ICU_MAJOR " libpcre2-8-0 libsentencepiece0";
  }
  if (plug_in.find("decompress") != plug_in.npos) return "zlib1g libzstd1";
  if (plug_in.find("mpich") != plug_in.npos) return "mpich";
  if (plug_in.find("mpi") != plug_in.npos) return "openmpi-bin";
  return "";
}

/// A tarball brings plug-ins for both MPIs and neither MPI: without its mpirun nothing needs it.
bool is_unused_mpi(const Probe& probe, std::string_view plug_in) {
  for (const std::string kind : {"openmpi", "mpich"}) {
    if (plug_in.find("_mpi_" + kind) == plug_in.npos) continue;
    return probe.find_program("mpirun." + kind).empty();
  }
  return false;
}

bool is_plug_in(std::string_view name) {
  return name.starts_with("libdstrain_") && name.ends_with(".so") && name != "libdstrain_core.so";
}

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

/// Finds it beside dstrain, else on PATH, as a launch does.
std::string find_beside(const Probe& probe, const std::string& name) {
  const std::string beside = probe.program_directory() + "/" + name;
  return probe.facts(beside).kind == FileFacts::Kind::file ? beside : probe.find_program(name);
}

}  // namespace

std::map<std::string, std::string> plug_ins(const Probe& probe) {
  const std::optional<std::string> named = probe.variable(env::plug_in_path);
  std::map<std::string, std::string> files;
  for (const std::string& folder :
       plug_in_folders(named ? named->c_str() : nullptr, probe.library_directory())) {
    for (const std::string& name : probe.names(folder)) {
      if (is_plug_in(name)) files.emplace(name, fmt::format("{}/{}", folder, name));
    }
  }
  return files;
}

void check_programs(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const std::string daemon = find_beside(probe, "dstraind");
  if (daemon.empty()) {
    return findings.problem(
        fmt::format("dstraind is neither beside dstrain in {} nor on PATH: training cannot start",
                    probe.program_directory()),
        "install all of dstrain's bin directory; pass --copy_binary to copy it to other hosts");
  }
  const ProgramRun run = probe.run({daemon, "--version"});
  if (run.status != 0) {
    const std::string reason = run.ended ? last_line(run.output) : "it hangs";
    return findings.problem(fmt::format("{} does not run: {}", daemon, reason),
                            "install the package of the missing library, or build dstrain on this "
                            "machine (.ci/setup.sh)");
  }
  const std::string said = last_line(run.output);
  if (said != "dstraind " + probe.version()) {
    return findings.problem(
        fmt::format("{} reports \"{}\", but this is dstrain {}", daemon, said, probe.version()),
        "install dstrain and dstraind of the same version");
  }
  findings.ok(fmt::format("dstrain {} and dstraind in {}", probe.version(),
                          daemon.substr(0, daemon.rfind('/'))));
}

void check_plug_ins(const Probe& probe, const Question& /*question*/, Findings& findings) {
  std::vector<std::string> usable;
  const std::map<std::string, std::string> files = plug_ins(probe);
  for (const auto& [name, file] : files) {
    if (name == gpu_plug_in) continue;
    const Result<std::string> loaded = probe.load(file);
    if (loaded.ok()) {
      usable.push_back(name);
      continue;
    }
    const std::string what = fmt::format("{} cannot be loaded: {}", name, loaded.error());
    const std::string remedy = fmt::format("apt-get install {}", package_of(name));
    if (is_unused_mpi(probe, name)) {
      findings.note(what, remedy + " to start ranks through its mpirun");
    } else {
      findings.problem(what, remedy);
    }
  }
  if (!usable.empty()) findings.ok(fmt::format("{}", fmt::join(usable, ", ")));
  const auto has = [&](std::string_view what) {
    return std::ranges::any_of(
        files, [&](const auto& file) { return file.first.find(what) != file.first.npos; });
  };
  if (!has("tokenizers")) {
    findings.note("no libdstrain_tokenizers.so: only the byte tokenizer works",
                  "install the whole of dstrain's bin directory");
  }
  if (!has("ssh")) {
    findings.note("no libdstrain_ssh.so: other hosts can be reached only through --ssh_command",
                  "apt-get install libssh-dev and build again");
  }
  if (!has("mpi")) {
    findings.note("no libdstrain_mpi: ranks cannot communicate through MPI",
                  "apt-get install dstrain-openmpi or dstrain-mpich; for a build of your own, "
                  "libopenmpi-dev or libmpich-dev, and build again");
  }
}

void check_libraries(const Probe& probe, const Question& /*question*/, Findings& findings) {
  std::vector<std::string> found;
  for (const Library& library : own_libraries) {
    const Result<std::string> loaded = probe.load(library.soname);
    if (loaded.ok()) {
      found.push_back(fmt::format("{} ({})", library.name, file_name(loaded.value())));
    } else {
      findings.note(fmt::format("{} cannot be loaded, but {} needs it if it is built in: {}",
                                library.name, library.use, loaded.error()),
                    fmt::format("apt-get install {}", library.package));
    }
  }
  if (!found.empty()) {
    findings.ok(fmt::format("{}; built with {}", fmt::join(found, ", "), DSTRAIN_BUILT_WITH));
  }
}

}  // namespace dstrain::launcher::doctor
