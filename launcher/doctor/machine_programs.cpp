// The part of MachineProbe that runs programs and loads libraries.
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <type_traits>

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
#include "runtime/base/function_ref.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr double program_seconds = 5;

/// Runs in a process that then ends: returns "+" and the library's file, or "-" and why it is not
/// loaded.
std::string load_here(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return std::string("-") + ::dlerror();
  link_map* map = nullptr;
  std::array<char, PATH_MAX> path{};
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "+" + library;
  return std::string("+") +
         (::realpath(map->l_name, path.data()) != nullptr ? path.data() : map->l_name);
}

/// A GPU in the form that is passed between processes.
struct GpuBytes {
  std::array<char, 128> name{};
  GpuReading reading{};
};
static_assert(std::is_trivially_copyable_v<GpuBytes>);

/// As above: "+" and the bytes of each GPU.
std::string read_gpus_here() {
  const Result<std::vector<GpuSensors>> gpus = GpuSensors::all();
  if (!gpus.ok()) return "-" + gpus.error();
  std::string all = "+";
  for (const GpuSensors& gpu : gpus.value()) {
    GpuBytes bytes{.reading = gpu.read()};
    gpu.name().copy(bytes.name.data(), bytes.name.size() - 1);
    all.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  }
  return all;
}

/// Runs `work` in a separate process and returns what follows the "+" of its result; the failure is
/// what follows its "-", or how that process ended.
Result<std::string> ask_process(FunctionRef<std::string()> work) {
  PipeEnds pipe = make_pipe();
  const pid_t pid = ::fork();
  if (pid < 0) return Failure{why_no_process(errno)};
  if (pid == 0) {
    const std::string said = work();
    const ssize_t put = ::write(pipe.write.get(), said.data(), said.size());
    ::_exit(put < 0 ? 1 : 0);
  }
  pipe.write.reset();
  const auto [said, end] = output_of_child(pid, std::move(pipe.read), program_seconds);
  if (said.starts_with('+')) return said.substr(1);
  if (said.starts_with('-')) return Failure{said.substr(1)};
  return Failure{end ? "the process that loads it " + describe_end(*end)
                     : std::string("loading it hangs")};
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
  return ask_process([&] { return load_here(library); });
}

Result<std::vector<GpuFacts>> MachineProbe::gpus() const {
  const Result<std::string> told = ask_process([] { return read_gpus_here(); });
  if (!told.ok()) return told.failure();
  std::vector<GpuFacts> gpus;
  for (std::size_t at = 0; at + sizeof(GpuBytes) <= told.value().size(); at += sizeof(GpuBytes)) {
    GpuBytes bytes;
    std::memcpy(&bytes, told.value().data() + at, sizeof(bytes));
    gpus.push_back({bytes.name.data(), bytes.reading});
  }
  return gpus;
}

}  // namespace dstrain::launcher::doctor
