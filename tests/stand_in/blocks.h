#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

#include <cuda_runtime_api.h>

#include "tests/stand_in/draws.h"

namespace dstrain::stand_in {

/// Which thread of which block runs.
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

/// All threads of the block that have not returned arrive; whether one of them said yes.
bool sync_block(bool yes);
/// What the thread whose lane differs in the bits of `lanes` gives.
std::uint64_t exchange(std::uint64_t value, int lanes);
/// What a warp does as one, for which all of its threads come with their operands; they go on once
/// it is done.
using Collective = void (*)(const std::array<void*, 32>& operands);
void run_collective(Collective work, void* operands);
/// The block's, full of NaNs when it begins. Ends the program where it is less than `bytes`.
std::byte* shared_memory(std::size_t bytes);
/// Ends the program unless the bytes lie in the block's shared memory, at a multiple of their
/// count.
void require_shared(const void* address, std::size_t bytes);
/// 16 bytes that come to shared memory when the thread waits for its copies, at the latest, and no
/// sooner unless that is drawn; zeros where there is no source.
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
/// Gives the stream `body` to run in every thread of every block, once `kernel` is loaded.
cudaError_t start(const Launch& launch,
                  cudaStream_t stream,
                  const void* kernel,
                  std::function<void()> body);

}  // namespace dstrain::stand_in
