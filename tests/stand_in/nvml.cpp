// The NVML functions that dstrain calls. GPU k draws 100 (k + 1) W of 700, is busy 90 - 10 k % of
// the time, and has 40 + k degrees. DSTRAIN_STAND_IN_XID="79 31" lists the errors that the driver
// reports for each GPU after a process has started.
#include "runtime/os/nvml.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include <cuda_runtime_api.h>

using namespace dstrain::nvml;

namespace {

unsigned number_of(Handle gpu) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(gpu)) - 1;
}

unsigned watts_of(Handle gpu) {
  return 100 * (number_of(gpu) + 1);
}

int find(unsigned number, Handle* gpu) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return not_found;
  if (number >= static_cast<unsigned>(count)) return not_found;
  *gpu = reinterpret_cast<Handle>(static_cast<std::uintptr_t>(number) + 1);
  return success;
}

std::istringstream& errors() {
  const char* const given = std::getenv("DSTRAIN_STAND_IN_XID");
  static std::istringstream left(given == nullptr ? "" : given);
  return left;
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  return success;
}
const char* nvmlErrorString(int status) {
  return status == not_found ? "no such GPU" : "an error of the stand-in";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  int gpus = 0;
  const bool known = cudaGetDeviceCount(&gpus) == cudaSuccess;
  *count = static_cast<unsigned>(gpus);
  return known ? success : not_found;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Handle* gpu) {
  return find(index, gpu);
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, Handle* gpu) {
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned device = 0;
  if (std::sscanf(id, "%8x:%2x:%2x.0", &domain, &bus, &device) != 3) return not_found;
  return domain == 0 && device == 0 ? find(bus, gpu) : not_found;
}
int nvmlDeviceGetName(Handle /*gpu*/, char* name, unsigned /*size*/) {
  std::strcpy(name, "stand-in");
  return success;
}
int nvmlDeviceGetTotalEnergyConsumption(Handle gpu, unsigned long long* millijoules) {
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const Milliseconds up = std::chrono::steady_clock::now().time_since_epoch();
  *millijoules = static_cast<unsigned long long>(watts_of(gpu) * up.count());
  return success;
}
int nvmlDeviceGetPowerUsage(Handle gpu, unsigned* milliwatts) {
  *milliwatts = 1000 * watts_of(gpu);
  return success;
}
int nvmlDeviceGetEnforcedPowerLimit(Handle /*gpu*/, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return success;
}
int nvmlDeviceGetUtilizationRates(Handle gpu, Utilization* utilization) {
  *utilization = {90 - 10 * number_of(gpu), 50};
  return success;
}
int nvmlDeviceGetTemperature(Handle gpu, int sensor, unsigned* celsius) {
  *celsius = 40 + number_of(gpu);
  return sensor == temperature_of_gpu ? success : not_supported;
}
int nvmlDeviceGetTotalEccErrors(Handle /*gpu*/, int, int, unsigned long long* /*errors*/) {
  return not_supported;
}
int nvmlEventSetCreate(Handle* events) {
  *events = &errors();
  return success;
}
int nvmlDeviceRegisterEvents(Handle /*gpu*/, unsigned long long types, Handle /*events*/) {
  return types == xid_events ? success : not_supported;
}
int nvmlEventSetWait_v2(Handle /*events*/, Event* event, unsigned /*milliseconds*/) {
  return errors() >> event->data ? success : timed_out;
}
int nvmlEventSetFree(Handle /*events*/) {
  return success;
}

}  // extern "C"
