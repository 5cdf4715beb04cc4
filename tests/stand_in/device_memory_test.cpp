// Device memory is accessible to kernels and copies only.
#include "tests/stand_in/device_memory.h"

#include <cmath>
#include <csignal>
#include <functional>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/stand_in/blocks.h"
#include "tests/support/catch.h"

namespace dstrain::stand_in {
namespace {

using Catch::Matchers::ContainsSubstring;

struct End {
  int signal;  ///< 0: none
  std::string said;
};

float* take_floats(std::size_t count) {
  void* address = nullptr;
  return cudaMalloc(&address, count * sizeof(float)) == cudaSuccess ? static_cast<float*>(address)
                                                                    : nullptr;
}

/// How a process ends that runs `body` with 1000 floats of device memory.
End end_of(const std::function<void(float* there)>& body) {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const int number : {SIGSEGV, SIGABRT}) std::signal(number, SIG_DFL);
    ::dup2(pipe[1], STDERR_FILENO);
    body(take_floats(1000));
    ::_exit(0);
  }
  ::close(pipe[1]);
  End end{};
  char piece[256];
  for (ssize_t got = 0; (got = ::read(pipe[0], piece, sizeof(piece))) > 0;) {
    end.said.append(piece, static_cast<std::size_t>(got));
  }
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return end;
}

/// Runs `body` as a kernel of one thread.
void run_kernel(const std::function<void()>& body) {
  const MemoryAccess access;
  run_grid({1, 1, 1, 1, 0}, body);
}

}  // namespace

TEST_CASE("Device memory: kernels and copies reach it and it comes full of NaNs", "[stand_in]") {
  float* const there = take_floats(1000);
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  std::vector<float> here(1000);
  const auto fetch = [&] {
    cudaMemcpyAsync(here.data(), there, 4000, cudaMemcpyDefault, stream);
    cudaStreamSynchronize(stream);
  };
  fetch();
  CHECK(std::isnan(here.front()));
  CHECK(std::isnan(here.back()));
  start({1, 1, 1, 10, 0}, stream, nullptr,
        [&] { there[990 + dstrain::stand_in::here().thread] = 7; });
  cudaMemsetAsync(there, 0, 400, stream);
  fetch();
  CHECK(here[99] == 0);
  CHECK(here[999] == 7);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaFree(there) == cudaSuccess);
}

TEST_CASE("Device memory: a host that touches it ends and says where", "[stand_in]") {
  const End reads = end_of([](float* there) {
    run_kernel([&] { there[5] = 1; });
    ::_exit(static_cast<const volatile float*>(there)[5] == 1 ? 0 : 1);
  });
  const End writes = end_of([](float* there) { there[999] = 1; });
  for (const End& end : {reads, writes}) {
    CHECK(end.signal == SIGABRT);
    CHECK_THAT(end.said, ContainsSubstring("the host touched memory of the device at 0x"));
  }
}

TEST_CASE("Device memory: a kernel that reaches beyond it ends", "[stand_in]") {
  const int at = GENERATE(-1, 1000, 1024);
  CAPTURE(at);
  const End end = end_of([&](float* there) {
    run_kernel([&] { there[at] = 1; });
    cudaFree(there);  // checks the padding up to 256 bytes
  });
  CHECK(end.signal == SIGABRT);
  CHECK_THAT(end.said,
             ContainsSubstring(at == 1000 ? "wrote beside memory of the device, at 0x"
                                          : "reached beyond memory of the device, at 0x"));
}

TEST_CASE("Device memory: other faults are not affected", "[stand_in]") {
  const End end = end_of([](float* /*there*/) {
    volatile int* const nowhere = reinterpret_cast<int*>(std::uintptr_t{64});
    *nowhere = 1;
  });
  CHECK(end.signal == SIGSEGV);
  CHECK(end.said.empty());
}

}  // namespace dstrain::stand_in
