// When each kernel and copy of a program ran. The CUDA driver loads this library if
// CUDA_INJECTION64_PATH names it. Each process writes the file $KERNEL_TIMES.PID, a line for each:
// begin and end in ns, stream, blocks, threads of a block, registers of a thread, bytes that a
// block shares, and the kernel's name or the copy's kind and bytes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <cupti.h>
#include <unistd.h>

namespace {

std::FILE* output = nullptr;

struct Times {
  std::uint64_t begin;
  std::uint64_t end;
  std::uint32_t stream;
};

void write(const Times& times, const std::string& launch, const std::string& name) {
  std::fprintf(output, "%llu\t%llu\t%u\t%s\t%s\n", static_cast<unsigned long long>(times.begin),
               static_cast<unsigned long long>(times.end), times.stream, launch.c_str(),
               name.c_str());
}

void write(const CUpti_ActivityKernel9& kernel) {
  const auto column = [](std::int64_t value) {
    return std::to_string(value);
  };
  write({kernel.start, kernel.end, kernel.streamId},
        column(std::int64_t{kernel.gridX} * kernel.gridY * kernel.gridZ) + "\t" +
            column(std::int64_t{kernel.blockX} * kernel.blockY * kernel.blockZ) + "\t" +
            column(kernel.registersPerThread) + "\t" +
            column(std::int64_t{kernel.staticSharedMemory} + kernel.dynamicSharedMemory),
        kernel.name);
}

void write(const CUpti_ActivityMemcpy5& copy) {
  write({copy.start, copy.end, copy.streamId}, "\t\t\t",
        "copy of kind " + std::to_string(copy.copyKind) + ", " + std::to_string(copy.bytes) +
            " bytes");
}

void CUPTIAPI provide(std::uint8_t** buffer, std::size_t* bytes, std::size_t* records_most) {
  constexpr std::size_t buffer_bytes = std::size_t{8} << 20U;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, buffer_bytes));
  *bytes = buffer_bytes;
  *records_most = 0;  // as many as there is room for
}

void CUPTIAPI take(CUcontext /*context*/,
                   std::uint32_t /*stream*/,
                   std::uint8_t* buffer,
                   std::size_t /*bytes*/,
                   std::size_t valid_bytes) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      write(*reinterpret_cast<const CUpti_ActivityKernel9*>(record));
    } else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
      write(*reinterpret_cast<const CUpti_ActivityMemcpy5*>(record));
    }
  }
  std::fflush(output);
  std::free(buffer);
}

void write_the_rest() {
  cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

bool begin() {
  const char* const files = std::getenv("KERNEL_TIMES");
  if (files == nullptr) return false;
  output = std::fopen((std::string(files) + "." + std::to_string(::getpid())).c_str(), "w");
  constexpr std::uint32_t flush_milliseconds = 500;
  return output != nullptr && cuptiActivityRegisterCallbacks(provide, take) == CUPTI_SUCCESS &&
         cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS &&
         cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY) == CUPTI_SUCCESS &&
         cuptiActivityFlushPeriod(flush_milliseconds) == CUPTI_SUCCESS &&
         std::atexit(write_the_rest) == 0;
}

}  // namespace

extern "C" int InitializeInjection() {
  if (!begin()) std::fprintf(stderr, "kernel_times: the times cannot be written\n");
  return 1;
}
