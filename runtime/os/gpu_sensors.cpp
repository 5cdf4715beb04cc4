#include "runtime/os/gpu_sensors.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <dlfcn.h>

#include "runtime/base/error.h"
#include "runtime/os/nvml.h"
#include "runtime/os/plug_in.h"

namespace dstrain {
namespace {

constexpr PlugIn library{.file = "libnvidia-ml.so.1"};

using nvml::Event;
using nvml::Handle;
using nvml::Status;
using nvml::success;
using nvml::Utilization;

struct Api {
  Status (*init)();
  const char* (*error_string)(Status);
  Status (*count)(unsigned*);
  Status (*by_index)(unsigned, Handle*);
  Status (*by_bus_id)(const char*, Handle*);
  Status (*name)(Handle, char*, unsigned);
  // Missing in older libraries.
  Status (*energy)(Handle, unsigned long long*);
  Status (*power)(Handle, unsigned*);
  Status (*power_limit)(Handle, unsigned*);
  Status (*utilization)(Handle, Utilization*);
  Status (*temperature)(Handle, int, unsigned*);
  Status (*slowdowns)(Handle, unsigned long long*);
  Status (*memory_errors)(Handle, int, int, unsigned long long*);
  Status (*make_events)(Handle*);
  Status (*register_events)(Handle, unsigned long long, Handle);
  Status (*wait_for_event)(Handle, Event*, unsigned);
  Status (*free_events)(Handle);
};

/// Replaces a function that the library lacks.
template <class... Arguments>
Status lacking(Arguments... /*arguments*/) {
  return nvml::function_not_found;
}

template <class... Arguments>
void find(Status (*&function)(Arguments...), void* opened, const char* symbol) {
  void* const found = ::dlsym(opened, symbol);
  function =
      found == nullptr ? &lacking<Arguments...> : reinterpret_cast<Status (*)(Arguments...)>(found);
}

Result<Api> open_api() {
  const Result<void*> opened = open_plug_in(library);
  if (!opened.ok()) return Failure{opened.error()};
  void* const from = opened.value();
  Api api{};
  find(api.init, from, "nvmlInit_v2");
  api.error_string = reinterpret_cast<const char* (*)(Status)>(::dlsym(from, "nvmlErrorString"));
  find(api.count, from, "nvmlDeviceGetCount_v2");
  find(api.by_index, from, "nvmlDeviceGetHandleByIndex_v2");
  find(api.by_bus_id, from, "nvmlDeviceGetHandleByPciBusId_v2");
  find(api.name, from, "nvmlDeviceGetName");
  find(api.energy, from, "nvmlDeviceGetTotalEnergyConsumption");
  find(api.power, from, "nvmlDeviceGetPowerUsage");
  find(api.power_limit, from, "nvmlDeviceGetEnforcedPowerLimit");
  find(api.utilization, from, "nvmlDeviceGetUtilizationRates");
  find(api.temperature, from, "nvmlDeviceGetTemperature");
  find(api.slowdowns, from, "nvmlDeviceGetCurrentClocksThrottleReasons");
  find(api.memory_errors, from, "nvmlDeviceGetTotalEccErrors");
  find(api.make_events, from, "nvmlEventSetCreate");
  find(api.register_events, from, "nvmlDeviceRegisterEvents");
  find(api.wait_for_event, from, "nvmlEventSetWait_v2");
  find(api.free_events, from, "nvmlEventSetFree");
  if (api.error_string == nullptr) return Failure{fmt::format("{} is too old", library.file)};
  const Status status = api.init();
  if (status != success) {
    return Failure{fmt::format("{}: {}", library.file, api.error_string(status))};
  }
  return api;
}

/// Loads the library once per process; it is never closed.
const Result<Api>& api() {
  static const Result<Api> opened = open_api();
  return opened;
}

std::string name_of(const Api& calls, Handle device) {
  std::array<char, 128> name{};
  const Status status = calls.name(device, name.data(), static_cast<unsigned>(name.size() - 1));
  return status == success ? name.data() : "a GPU";
}

struct KnownXid {
  std::uint64_t number;
  const char* meaning;
  bool gpu_is_at_fault;
};
/// The errors in NVIDIA's catalogue that end a training.
constexpr std::array known_xids{
    KnownXid{13, "an exception in a kernel", false},
    KnownXid{31, "a kernel used memory that is not its own", false},
    KnownXid{43, "the GPU stopped working for a process", false},
    KnownXid{45, "work was cancelled after an earlier error", false},
    KnownXid{48, "a memory error that ECC cannot correct", true},
    KnownXid{63, "a row of its memory is replaced", true},
    KnownXid{64, "a row of its memory cannot be replaced", true},
    KnownXid{74, "NVLink failed", true},
    KnownXid{79, "the GPU has fallen off the bus", true},
    KnownXid{94, "a memory error, contained in one process", true},
    KnownXid{95, "a memory error that is not contained", true},
    KnownXid{119, "the GPU's own processor does not answer", true},
    KnownXid{120, "the GPU's own processor failed", true},
};

}  // namespace

Result<std::vector<GpuSensors>> GpuSensors::all() {
  const Result<Api>& opened = api();
  if (!opened.ok()) return opened.failure();
  unsigned count = 0;
  Status status = opened.value().count(&count);
  std::vector<GpuSensors> gpus;
  for (unsigned i = 0; i < count && status == success; ++i) {
    Handle device = nullptr;
    status = opened.value().by_index(i, &device);
    if (status == success) gpus.push_back({device, name_of(opened.value(), device)});
  }
  if (status == success) return gpus;
  return Failure{fmt::format("GPU {}: {}", gpus.size(), opened.value().error_string(status))};
}

Result<GpuSensors> GpuSensors::at(const std::string& bus_id) {
  const Result<Api>& opened = api();
  if (!opened.ok()) return opened.failure();
  Handle device = nullptr;
  const Status status = opened.value().by_bus_id(bus_id.c_str(), &device);
  if (status != success) {
    return Failure{fmt::format("GPU {}: {}", bus_id, opened.value().error_string(status))};
  }
  return GpuSensors(device, name_of(opened.value(), device));
}

GpuReading GpuSensors::read() const {
  const Api& calls = api().value();
  GpuReading reading;
  unsigned long long number = 0;
  unsigned small_number = 0;
  Utilization utilization{};
  if (calls.energy(device_, &number) == success) {
    reading.joules = static_cast<double>(number) / 1e3;
  }
  if (calls.power(device_, &small_number) == success) reading.watts = small_number / 1e3;
  if (calls.power_limit(device_, &small_number) == success)
    reading.watts_limit = small_number / 1e3;
  if (calls.utilization(device_, &utilization) == success) {
    reading.busy_percent = static_cast<int>(utilization.gpu);
  }
  if (calls.temperature(device_, nvml::temperature_of_gpu, &small_number) == success) {
    reading.celsius = static_cast<int>(small_number);
  }
  if (calls.memory_errors(device_, nvml::uncorrected, nvml::since_driver, &number) == success) {
    reading.memory_errors = static_cast<std::int64_t>(number);
  }
  if (calls.slowdowns(device_, &number) == success) {
    reading.slowed_by_heat = (number & nvml::slowed_by_heat) != 0;
    reading.slowed_by_supply = (number & nvml::slowed_by_supply) != 0;
  }
  return reading;
}

GpuErrorWatch::GpuErrorWatch(const GpuSensors& gpu) {
  const Api& calls = api().value();
  if (calls.make_events(&events_) != success) {
    events_ = nullptr;
    return;
  }
  if (calls.register_events(gpu.device_, nvml::xid_events, events_) == success) return;
  calls.free_events(events_);  // a GPU of a virtual machine may report no events
  events_ = nullptr;
}

GpuErrorWatch::~GpuErrorWatch() {
  if (events_ != nullptr) api().value().free_events(events_);
}

std::vector<std::uint64_t> GpuErrorWatch::take(double seconds) {
  std::vector<std::uint64_t> numbers;
  if (events_ == nullptr) return numbers;
  auto wait_ms = static_cast<unsigned>(std::ceil(seconds * 1e3));
  Event event{};
  while (api().value().wait_for_event(events_, &event, wait_ms) == success) {
    numbers.push_back(event.data);
    wait_ms = 0;
  }
  return numbers;
}

std::string describe_xid(std::uint64_t number) {
  const auto* const known = std::ranges::find(known_xids, number, &KnownXid::number);
  if (known == known_xids.end()) return fmt::format("Xid {}", number);
  return fmt::format("Xid {} ({}){}", number, known->meaning,
                     known->gpu_is_at_fault
                         ? ": leave the GPU out (--exclude HOST:SLOT) until it has been looked at"
                         : "");
}

}  // namespace dstrain
