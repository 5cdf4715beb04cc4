// The part of MachineProbe that runs programs and loads libraries.
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <climits>

#include "launcher/doctor/machine_probe.h"
#include "launcher/process/pipes.h"
#include "launcher/process/process.h"
#include "launcher/process/program_output.h"
#include "launcher/process/program_path.h"
#include "runtime/base/exception_text.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr double program_seconds = 5;

/// In a process that ends with it: "+" and the library's file, or "-" and why it is not loaded.
std::string load_here(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return std::string("-") + ::dlerror();
  link_map* map = nullptr;
  std::array<char, PATH_MAX> path{};
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "+" + library;
  return std::string("+") +
         (::realpath(map->l_name, path.data()) != nullptr ? path.data() : map->l_name);
}

}  // namespace

ProgramRun MachineProbe::run(const std::vector<std::string>& words) const {
  std::vector<std::string> argv = words;
  if (argv.front().find('/') == std::string::npos) argv.front() = find_on_path(argv.front());
  const Result<ProgramOutput> output = run_program(argv, program_seconds);
  if (!output.ok()) return {false, -1, output.error()};
  const std::optional<int>& end = output.value().wait_status;
  return {end.has_value(), end ? shell_status(*end) : -1, output.value().text};
}

Result<std::string> MachineProbe::load(const std::string& library) const {
  PipeEnds pipe = make_pipe();
  const pid_t pid = ::fork();
  if (pid < 0) return Failure{why_no_process(errno)};
  if (pid == 0) {
    const std::string said = load_here(library);
    const ssize_t put = ::write(pipe.write.get(), said.data(), said.size());
    ::_exit(put < 0 ? 1 : 0);
  }
  pipe.write.reset();
  const auto [said, end] = output_of_child(pid, std::move(pipe.read), program_seconds);
  if (said.starts_with('+')) return said.substr(1);
  if (said.starts_with('-')) return Failure{said.substr(1)};
  return Failure{end ? "the process that loads it " + describe_end(*end)
                     : std::string("loading it does not end")};
}

}  // namespace dstrain::launcher::doctor
