// What a profiler sees of a program's NVTX ranges. NVTX loads this library if NVTX_INJECTION64_PATH
// names it. Each process writes the file $NVTX_LOG.PID, a line for each beginning and end: the
// thread, how many of its ranges are open around it, and the name; "-" is an end. Ranges that are
// no thread's have the thread 0 and their own number in place of the count.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <sys/syscall.h>
#include <unistd.h>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

namespace {

std::FILE* output = nullptr;
thread_local int depth = 0;

void write(long thread, unsigned long long number, const char* name) {
  std::fprintf(output, "%ld\t%llu\t%s\n", thread, number, name);
}

int push(const char* name) {
  write(::syscall(SYS_gettid), static_cast<unsigned long long>(depth), name);
  return depth++;
}

int pop() {
  --depth;
  write(::syscall(SYS_gettid), static_cast<unsigned long long>(depth), "-");
  return depth;
}

nvtxRangeId_t start(const char* name) {
  static std::atomic<nvtxRangeId_t> last = 0;
  const nvtxRangeId_t range = ++last;
  write(0, range, name);
  return range;
}

void end(nvtxRangeId_t range) {
  write(0, range, "-");
}

template <class Function>
void set(NvtxFunctionTable table, NvtxCallbackIdCore id, Function function) {
  *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t tables) {
  const char* const path = std::getenv("NVTX_LOG");
  if (path == nullptr) return 0;
  output = std::fopen((std::string(path) + "." + std::to_string(::getpid())).c_str(), "w");
  if (output == nullptr) return 0;
  std::setvbuf(output, nullptr, _IOLBF, BUFSIZ);  // whole, however the process ends
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) == 0) return 0;
  set(table, NVTX_CBID_CORE_RangePushA, push);
  set(table, NVTX_CBID_CORE_RangePop, pop);
  set(table, NVTX_CBID_CORE_RangeStartA, start);
  set(table, NVTX_CBID_CORE_RangeEnd, end);
  return 1;
}
