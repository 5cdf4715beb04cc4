// Blocks of threads as fibers of one thread of the CPU.
#include "tests/stand_in/blocks.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/stand_in/refusals.h"
#include "tests/stand_in/streams.h"

// Saves what a call must leave as it was, and goes on where another fiber did.
extern "C" void dstrain_switch_fiber(void** from, void* to);
asm(R"(
.text
.globl dstrain_switch_fiber
.hidden dstrain_switch_fiber
.type dstrain_switch_fiber, @function
dstrain_switch_fiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size dstrain_switch_fiber, .-dstrain_switch_fiber
)");

namespace dstrain::stand_in {
namespace {

constexpr int threads_most = 1024;
constexpr std::size_t stack_bytes = 64 * 1024;
constexpr int warp = 32;
constexpr std::size_t shared_most = 227 * 1024;

enum class Wait : std::uint8_t { none, block, exchange, returned };

struct Fiber {
  void* stack_pointer = nullptr;
  Wait waits = Wait::none;
  std::uint64_t value = 0;  ///< what it gives in an exchange
  int lanes = 0;
};

/// The block that runs. One at a time in the process.
struct Block {
  Here at;
  std::vector<Fiber> fibers = std::vector<Fiber>(threads_most);
  std::unique_ptr<std::byte[]> stacks{new std::byte[threads_most * stack_bytes]};
  std::unique_ptr<std::byte[]> memory{new std::byte[shared_most + 16]};
  void* scheduler = nullptr;
  const std::function<void()>* body = nullptr;
  int threads = 0;
  std::size_t shared_bytes = 0;
  bool yes = false;   ///< of those that arrived
  bool said = false;  ///< what the last barrier came to
};

Block& block() {
  static Block one;
  return one;
}

[[noreturn]] void end(const char* reason) {
  std::fprintf(stderr, "stand-in for a GPU: %s\n", reason);
  std::abort();
}

Fiber& own() {
  return block().fibers[static_cast<std::size_t>(block().at.thread)];
}

void wait(Wait what) {
  Fiber& fiber = own();
  fiber.waits = what;
  dstrain_switch_fiber(&fiber.stack_pointer, block().scheduler);
}

void run_fiber() {
  (*block().body)();
  wait(Wait::returned);
  end("a thread ran on after it had returned");
}

void prepare(int thread) {
  Fiber& fiber = block().fibers[static_cast<std::size_t>(thread)];
  auto* const top = reinterpret_cast<void**>(block().stacks.get() +
                                             (static_cast<std::size_t>(thread) + 1) * stack_bytes);
  // As if run_fiber() had been left by a switch: six registers, then where it goes on.
  void** const frame = top - 8;
  std::memset(frame, 0, 8 * sizeof(void*));
  frame[6] = reinterpret_cast<void*>(&run_fiber);
  fiber = {.stack_pointer = frame};
}

void run_until_wait(int thread) {
  Block& b = block();
  b.at.thread = thread;
  dstrain_switch_fiber(&b.scheduler, b.fibers[static_cast<std::size_t>(thread)].stack_pointer);
}

bool all_wait(int first, int count, Wait what) {
  bool some = false;
  for (int i = first; i < first + count; ++i) {
    const Wait waits = block().fibers[static_cast<std::size_t>(i)].waits;
    if (waits == what)
      some = true;
    else if (waits != Wait::returned || what == Wait::exchange)
      return false;
  }
  return some;
}

void release(int first, int count, Wait what) {
  for (int i = first; i < first + count; ++i) {
    Fiber& fiber = block().fibers[static_cast<std::size_t>(i)];
    if (fiber.waits == what) fiber.waits = Wait::none;
  }
}

/// Whether a warp has exchanged.
bool exchange_in_warp(int first) {
  if (!all_wait(first, warp, Wait::exchange)) return false;
  Block& b = block();
  std::uint64_t given[warp];
  for (int i = 0; i < warp; ++i) given[i] = b.fibers[static_cast<std::size_t>(first + i)].value;
  for (int i = 0; i < warp; ++i) {
    Fiber& fiber = b.fibers[static_cast<std::size_t>(first + i)];
    if (fiber.lanes != b.fibers[static_cast<std::size_t>(first)].lanes) end("lanes disagree");
    fiber.value = given[i ^ fiber.lanes];
  }
  release(first, warp, Wait::exchange);
  return true;
}

/// Whether there is more to do.
bool turn() {
  Block& b = block();
  bool ran = false;
  for (int i = 0; i < b.threads; ++i) {
    if (b.fibers[static_cast<std::size_t>(i)].waits != Wait::none) continue;
    run_until_wait(i);
    ran = true;
  }
  for (int first = 0; first + warp <= b.threads; first += warp) {
    if (exchange_in_warp(first)) ran = true;
  }
  if (all_wait(0, b.threads, Wait::block)) {
    b.said = b.yes;
    b.yes = false;
    release(0, b.threads, Wait::block);
    return true;
  }
  return ran;
}

void run_block() {
  Block& b = block();
  std::memset(b.memory.get(), 0xFF, shared_most);
  for (int i = 0; i < b.threads; ++i) prepare(i);
  b.yes = false;
  while (turn()) {
  }
  for (int i = 0; i < b.threads; ++i) {
    if (b.fibers[static_cast<std::size_t>(i)].waits != Wait::returned) end("threads wait for ever");
  }
}

}  // namespace

const Here& here() {
  return block().at;
}

bool sync_block(bool yes) {
  block().yes |= yes;
  wait(Wait::block);
  return block().said;
}

std::uint64_t exchange(std::uint64_t value, int lanes) {
  own().value = value;
  own().lanes = lanes;
  wait(Wait::exchange);
  return own().value;
}

std::byte* shared_memory(std::size_t bytes) {
  if (bytes > block().shared_bytes) end("a block shares more than it was given");
  auto address = reinterpret_cast<std::uintptr_t>(block().memory.get());
  address = (address + 15) / 16 * 16;
  return reinterpret_cast<std::byte*>(address);
}

/// One grid at a time.
void run_grid(const Launch& launch, const std::function<void()>& body) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Block& b = block();
  b.body = &body;
  b.threads = launch.threads;
  b.shared_bytes = launch.shared_bytes;
  for (std::int64_t z = 0; z < launch.z; ++z) {
    for (std::int64_t y = 0; y < launch.y; ++y) {
      for (std::int64_t x = 0; x < launch.x; ++x) {
        b.at = {0, x, y, z, launch.x};
        run_block();
      }
    }
  }
}

cudaError_t start(const Launch& launch,
                  cudaStream_t stream,
                  const void* kernel,
                  std::function<void()> body) {
  if (launch.threads > threads_most || launch.shared_bytes > shared_most || launch.x < 1 ||
      launch.x > 0x7fffffff || launch.y < 1 || launch.y > 65535 || launch.z < 1 ||
      launch.z > 65535) {
    return cudaErrorInvalidConfiguration;
  }
  if (refuses("cudaLaunchKernelExC")) return cudaErrorLaunchFailure;
  const Driver driver;
  count_kernel();
  device().load(kernel);
  queue_of(stream).give([launch, body = std::move(body)] { run_grid(launch, body); });
  return cudaSuccess;
}

}  // namespace dstrain::stand_in
