// Checks what can compute here: instruction sets and GPUs.
#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "launcher/doctor/checks.h"
#include "launcher/doctor/texts.h"
#include "runtime/os/gpu_files.h"
#include "runtime/os/visible_gpus.h"
#include "runtime/rank/worker_env.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr std::array library_directories{"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib",
                                         "/usr/local/cuda/lib64"};

/// The instruction set that the kernels of runtime/ops would choose.
std::string fp32_speed(const std::set<std::string>& flags) {
  if (flags.contains("avx512f") && flags.contains("avx512bw")) return "fp32 with AVX-512";
  if (flags.contains("avx2") && flags.contains("fma")) return "fp32 with AVX2";
  return "fp32 without AVX2";
}

std::string bf16_speed(const std::set<std::string>& flags, bool amd) {
  if (flags.contains("amx_bf16")) return "bf16 products on AMX, in about half the time of fp32";
  if (flags.contains("avx512_bf16") && amd) {
    return "bf16 products with AVX512_BF16, in about half the time of fp32";
  }
  return "bf16 is stored in half the memory and computed as fp32, in about the same time";
}

/// The first file in the usual directories with this prefix; empty: none.
std::string find_library(const Probe& probe, std::string_view begin) {
  for (const char* directory : library_directories) {
    for (const std::string& name : probe.names(directory)) {
      if (name.starts_with(begin)) return fmt::format("{}/{}", directory, name);
    }
  }
  return "";
}

int gpu_files(const Probe& probe) {
  const std::string directory = probe.variable(env::gpu_directory).value_or("/dev");
  return static_cast<int>(std::ranges::count_if(probe.names(directory), is_gpu_file));
}

std::string nvidia_libraries(const Probe& probe) {
  std::string text;
  for (const char* library : {"libcuda.so", "libnccl.so"}) {
    const std::string path = find_library(probe, library);
    text += fmt::format("; {}: {}", library, path.empty() ? "none" : path);
  }
  return text;
}

/// ", 41 C, 120 W of 700 W"
std::string describe(const GpuReading& reading) {
  std::string text;
  if (reading.celsius) text += fmt::format(", {} C", *reading.celsius);
  if (reading.watts) text += fmt::format(", {:.0f} W", *reading.watts);
  if (reading.watts && reading.watts_limit)
    text += fmt::format(" of {:.0f} W", *reading.watts_limit);
  return text;
}

}  // namespace

void check_processor(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const Processor processor = processor_of(probe.text("/proc/cpuinfo").value_or(""));
  if (processor.flags.empty()) {
    return findings.note("/proc/cpuinfo names no features of this processor");
  }
  const std::string fp32 = fp32_speed(processor.flags);
  const std::string what =
      fmt::format("{}, {} cores for this process: {}; {}", processor.model, probe.usable_cores(),
                  fp32, bf16_speed(processor.flags, processor.vendor == "AuthenticAMD"));
  if (processor.flags.contains("avx2")) return findings.ok(what);
  findings.note(what,
                "a processor with AVX2 trains several times as fast; for a virtual machine, choose "
                "a CPU type that shows it (host-passthrough)");
}

void check_gpus(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const int files = gpu_files(probe);
  const auto driver = probe.text("/proc/driver/nvidia/version");
  const std::map<std::string, std::string> known = plug_ins(probe);
  const auto plug_in = known.find(std::string(gpu_plug_in));
  if (files == 0 && !driver) {
    return findings.ok(
        fmt::format("none, so slots are CPU ranks; {} is {}", gpu_plug_in,
                    plug_in == known.end() ? "not installed" : "installed and not loaded"));
  }
  if (files == 0) {
    return findings.note(
        "NVIDIA's driver is loaded, but no GPU has a device file here" + nvidia_libraries(probe),
        "start the container with GPUs, if it should have some");
  }
  const std::string found =
      fmt::format("{} GPU device files; {}{}", files,
                  driver ? first_line_of(*driver) : "no driver is loaded", nvidia_libraries(probe));
  if (plug_in == known.end()) {
    return findings.note(fmt::format("{}; no {}: ranks cannot use them", found, gpu_plug_in),
                         "build with CUDA's toolkit, or pass --device cpu to use CPU ranks");
  }
  const Result<std::string> library = probe.load("libcuda.so.1");
  if (!library.ok()) {
    return findings.problem(
        fmt::format("{}; the driver's libcuda.so.1 cannot be loaded: {}", found, library.error()),
        "install NVIDIA's driver, start the container with its GPUs, or pass --device cpu to use "
        "CPU ranks");
  }
  const Result<std::string> loaded = probe.load(plug_in->second);
  if (loaded.ok()) return findings.ok(fmt::format("{}; {} uses them", found, gpu_plug_in));
  findings.problem(
      fmt::format("{}; {} cannot be loaded: {}", found, gpu_plug_in, loaded.error()),
      "install the named library (libcublasLt is CUDA's), or pass --device cpu to use CPU ranks");
}

void check_gpu_sensors(const Probe& probe, const Question& /*question*/, Findings& findings) {
  if (gpu_files(probe) == 0) return;
  const Result<std::vector<GpuFacts>> gpus = probe.gpus();
  if (!gpus.ok()) {
    return findings.note(fmt::format("cannot read the GPUs' sensors: {}", gpus.error()),
                         "in a container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility; until "
                         "then metrics.jsonl has no \"gpus\"");
  }
  for (std::size_t i = 0; i < gpus.value().size(); ++i) {
    const auto& [name, reading] = gpus.value()[i];
    const std::string gpu = fmt::format("GPU {}, {}{}", i, name, describe(reading));
    if (reading.memory_errors.value_or(0) > 0) {
      findings.problem(
          fmt::format("{}: {} uncorrectable memory (ECC) errors since the driver was loaded", gpu,
                      *reading.memory_errors),
          "exclude it (--exclude HOST:SLOT); see nvidia-smi -q -d ECC,ROW_REMAPPER");
    } else if (reading.slowed_by_heat) {
      findings.note(gpu + ": heat slows its clock down", "check its cooling");
    } else if (reading.slowed_by_supply) {
      findings.note(gpu + ": the machine's power supply slows its clock down",
                    "check the power supply");
    } else {
      findings.ok(gpu);
    }
  }
}

void check_visible_devices(const Probe& probe, const Question& /*question*/, Findings& findings) {
  const auto list = probe.variable("CUDA_VISIBLE_DEVICES");
  if (!list) return;
  const Result<std::vector<std::string>> shown = visible_gpus(*list, gpu_files(probe));
  if (!shown.ok()) {
    return findings.problem(shown.error(), "list existing GPUs, or unset it");
  }
  const bool hidden = shown.value().empty();
  findings.ok(fmt::format("CUDA_VISIBLE_DEVICES={}{}", *list, hidden ? ", which hides all" : ""));
}

}  // namespace dstrain::launcher::doctor
