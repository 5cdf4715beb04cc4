#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <cuda_runtime_api.h>

#include "tests/stand_in/draws.h"

namespace dstrain::stand_in {

/// The running thread and its block.
struct Here {
  int thread = 0;
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t z = 0;
  std::int64_t blocks_x = 0;
  std::int64_t blocks_y = 0;
  std::int64_t blocks_z = 0;
};
const Here& here();

/// Barrier for all threads of the block that have not returned. Returns whether any passed true.
bool sync_block(bool yes);
/// Returns the value of the thread in lane `lane ^ lanes`.
std::uint64_t exchange(std::uint64_t value, int lanes);
/// An operation of a whole warp. It runs once all threads of the warp have passed their operands,
/// and then they continue.
using Collective = void (*)(const std::array<void*, 32>& operands);
void run_collective(Collective work, void* operands);
/// The block's shared memory, filled with NaNs at its start. Aborts if it is less than `bytes`.
std::byte* shared_memory(std::size_t bytes);
/// Aborts unless the bytes lie in the block's shared memory, aligned to their count.
void require_shared(const void* address, std::size_t bytes);
/// Starts a copy of 16 bytes to shared memory, or of zeros if the source is null. They arrive when
/// the thread waits for its copies, or earlier if that is drawn.
void start_copy(void* target, const void* source);
void wait_for_copies();

struct Launch {
  std::int64_t x;
  std::int64_t y;
  std::int64_t z;
  int threads;
  std::size_t shared_bytes;
};
/// Runs `body` in every thread of every block, in an order that `draws` decides.
void run_grid(const Launch& launch,
              const std::function<void()>& body,
              const Draws& draws = Draws::next());
/// Loads `kernel`, and queues `body` on the stream, to run in every thread of every block.
cudaError_t start(const Launch& launch,
                  cudaStream_t stream,
                  const void* kernel,
                  std::function<void()> body);

}  // namespace dstrain::stand_in
