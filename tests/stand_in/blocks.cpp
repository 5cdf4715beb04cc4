// Runs the threads of a block as fibers of one CPU thread.
#include "tests/stand_in/blocks.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/stand_in/launch_log.h"
#include "tests/stand_in/refusals.h"
#include "tests/stand_in/streams.h"

// Saves the callee-saved registers and resumes another fiber.
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
// Sanitizers need most of it. The odd 320 bytes put the stacks of a block in different cache sets.
constexpr std::size_t stack_bytes = 512 * 1024 + 320;
constexpr int warp = 32;
constexpr std::size_t shared_most = 227 * 1024;

enum class Wait : std::uint8_t { none, block, collective, returned };

struct Fiber {
  void* stack_pointer = nullptr;
  Wait waits = Wait::none;
  Collective work = nullptr;  ///< the warp's operation that it waits for
  void* operands = nullptr;
};

/// A thread's operands and result in a shuffle.
struct Exchange {
  std::uint64_t value;
  int lanes;
  std::uint64_t taken = 0;
};

constexpr std::size_t copy_bytes = 16;
struct Copy {
  void* target;
  const void* source;
};

/// The running block; the process runs one at a time.
struct Block {
  Here at;
  Draws draws;
  std::vector<int> warps;  ///< the first thread of each warp, in the order in which warps run
  std::vector<int> lanes;  ///< the lanes of a warp, in the order in which they run
  std::vector<Fiber> fibers = std::vector<Fiber>(threads_most);
  std::vector<std::vector<Copy>> copies = std::vector<std::vector<Copy>>(threads_most);
  std::unique_ptr<std::byte[]> stacks{new std::byte[threads_most * stack_bytes]};
  std::unique_ptr<std::byte[]> memory{new std::byte[shared_most + 16]};
  void* scheduler = nullptr;
  const std::function<void()>* body = nullptr;
  int threads = 0;
  std::size_t shared_bytes = 0;
  bool yes = false;   ///< whether a thread that arrived passed true
  bool said = false;  ///< the result of the last barrier
};

/// Never destroyed, like device(). Not a local static, whose initialization each switch would
/// check.
Block& the_block = *new Block;
Block& block() {
  return the_block;
}

[[noreturn]] void end(const char* reason) {
  std::fprintf(stderr, "stand-in for a GPU: %s\n", reason);
  std::abort();
}

Fiber& own() {
  return block().fibers[static_cast<std::size_t>(block().at.thread)];
}

std::vector<Copy>& own_copies() {
  return block().copies[static_cast<std::size_t>(block().at.thread)];
}

void complete(const Copy& copy) {
  if (copy.source == nullptr)
    std::memset(copy.target, 0, copy_bytes);
  else
    std::memcpy(copy.target, copy.source, copy_bytes);
}

std::byte* first_shared() {
  auto address = reinterpret_cast<std::uintptr_t>(block().memory.get());
  address = (address + 15) / 16 * 16;
  return reinterpret_cast<std::byte*>(address);
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

/// Guard value at the far end of a fiber's stack, to detect overflow.
constexpr std::uint64_t unreached = 0x57ac'0e4d'57ac'0e4d;
std::uint64_t& stack_end(int thread) {
  return *reinterpret_cast<std::uint64_t*>(block().stacks.get() +
                                           static_cast<std::size_t>(thread) * stack_bytes);
}

void prepare(int thread) {
  Fiber& fiber = block().fibers[static_cast<std::size_t>(thread)];
  stack_end(thread) = unreached;
  auto* const top = reinterpret_cast<void**>(block().stacks.get() +
                                             (static_cast<std::size_t>(thread) + 1) * stack_bytes);
  // A frame as left by a switch: six registers, then the return address, run_fiber().
  void** const frame = top - 8;
  std::memset(frame, 0, 8 * sizeof(void*));
  frame[6] = reinterpret_cast<void*>(&run_fiber);
  fiber = {.stack_pointer = frame};
}

void run_until_wait(int thread) {
  Block& b = block();
  b.at.thread = thread;
  dstrain_switch_fiber(&b.scheduler, b.fibers[static_cast<std::size_t>(thread)].stack_pointer);
  if (stack_end(thread) != unreached) end("the stack of a thread is full");
}

bool all_wait(int first, int count, Wait what) {
  bool some = false;
  for (int i = first; i < first + count; ++i) {
    const Wait waits = block().fibers[static_cast<std::size_t>(i)].waits;
    if (waits == what)
      some = true;
    else if (waits != Wait::returned || what == Wait::collective)
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

void exchange_values(const std::array<void*, 32>& operands) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    auto& own = *static_cast<Exchange*>(operands[i]);
    const auto other = i ^ static_cast<std::size_t>(own.lanes);
    if (own.lanes != static_cast<Exchange*>(operands[0])->lanes) end("lanes disagree");
    own.taken = static_cast<Exchange*>(operands[other])->value;
  }
}

/// Runs the warp's collective operation if all its threads wait for it. Returns whether it did.
bool ran_collective(int first) {
  if (!all_wait(first, warp, Wait::collective)) return false;
  const Collective work = block().fibers[static_cast<std::size_t>(first)].work;
  std::array<void*, warp> operands{};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Fiber& fiber = block().fibers[static_cast<std::size_t>(first) + i];
    if (fiber.work != work) end("threads of a warp disagree on what they do as one");
    operands[i] = fiber.operands;
  }
  work(operands);
  release(first, warp, Wait::collective);
  return true;
}

/// Resumes the threads of a warp that can run. Returns whether any did.
bool ran_warp(int first) {
  Block& b = block();
  bool ran = false;
  for (const int lane : b.lanes) {
    const int thread = first + lane;
    if (thread >= b.threads) continue;
    if (b.fibers[static_cast<std::size_t>(thread)].waits != Wait::none) continue;
    run_until_wait(thread);
    ran = true;
  }
  return (first + warp <= b.threads && ran_collective(first)) || ran;
}

/// Runs warps for one turn. Returns whether there is more to do. If orders are drawn, the first
/// warp that can run continues until it waits for the others, unless the warps are reshuffled.
bool turn() {
  Block& b = block();
  bool ran = false;
  for (const int first : b.warps) {
    if (ran_warp(first)) ran = true;
    if (ran && b.draws.drawn()) break;
  }
  if (b.draws.one_in(8)) b.draws.shuffle(b.warps);
  if (all_wait(0, b.threads, Wait::block)) {
    b.said = b.yes;
    b.yes = false;
    release(0, b.threads, Wait::block);
    b.draws.shuffle(b.warps);
    b.draws.shuffle(b.lanes);
    return true;
  }
  return ran;
}

void run_block() {
  Block& b = block();
  std::memset(first_shared(), 0xFF, b.shared_bytes);
  for (int i = 0; i < b.threads; ++i) prepare(i);
  b.draws.shuffle(b.warps);
  b.draws.shuffle(b.lanes);
  b.yes = false;
  while (turn()) {
  }
  for (int i = 0; i < b.threads; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (b.fibers[at].waits != Wait::returned) end("threads wait for ever");
    if (!b.copies[at].empty()) end("a block ended before its copies had come");
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

void run_collective(Collective work, void* operands) {
  own().work = work;
  own().operands = operands;
  wait(Wait::collective);
}

std::uint64_t exchange(std::uint64_t value, int lanes) {
  Exchange own{value, lanes};
  run_collective(exchange_values, &own);
  return own.taken;
}

std::byte* shared_memory(std::size_t bytes) {
  if (bytes > block().shared_bytes) end("a block shares more than it was given");
  return first_shared();
}

void require_shared(const void* address, std::size_t bytes) {
  const std::byte* const begin = first_shared();
  const auto* const at = static_cast<const std::byte*>(address);
  if (at < begin || at + bytes > begin + block().shared_bytes) end("no address of shared memory");
  if (reinterpret_cast<std::uintptr_t>(at) % bytes != 0) end("an address that is not aligned");
}

void start_copy(void* target, const void* source) {
  require_shared(target, copy_bytes);
  if (reinterpret_cast<std::uintptr_t>(source) % copy_bytes != 0) {
    end("an address that is not aligned");
  }
  const Copy copy{target, source};
  if (block().draws.one_in(2))
    complete(copy);
  else
    own_copies().push_back(copy);
}

void wait_for_copies() {
  for (const Copy& copy : own_copies()) complete(copy);
  own_copies().clear();
}

/// Runs one grid at a time.
void run_grid(const Launch& launch, const std::function<void()>& body, const Draws& draws) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  Block& b = block();
  b.body = &body;
  b.draws = draws;
  b.threads = launch.threads;
  b.shared_bytes = launch.shared_bytes;
  b.warps.clear();
  for (int first = 0; first < launch.threads; first += warp) b.warps.push_back(first);
  b.lanes.resize(warp);
  std::iota(b.lanes.begin(), b.lanes.end(), 0);
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(launch.x * launch.y * launch.z));
  std::iota(blocks.begin(), blocks.end(), 0);
  b.draws.shuffle(blocks);
  for (const std::int64_t number : blocks) {
    const std::int64_t row = number / launch.x;
    b.at = {0, number % launch.x, row % launch.y, row / launch.y, launch.x, launch.y, launch.z};
    run_block();
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
  if (refuses("cudaLaunchKernelEx")) return cudaErrorLaunchFailure;
  const Driver driver;
  count_kernel();
  log_launch(kernel, launch.shared_bytes);
  device().load(kernel);
  queue_of(stream).give_work(
      [launch, body = std::move(body), draws = Draws::next()] { run_grid(launch, body, draws); });
  return cudaSuccess;
}

}  // namespace dstrain::stand_in
