// What the buffers of stages 2 and 3 take, counted by hand.

#include "tests/support/catch.h"
#include "tests/support/toy_gpt2.h"
#include "zero/gather_buffers.h"
#include "zero/sharded_gradients.h"

using namespace dstrain;

namespace {

constexpr std::int64_t many = 1'000'000;

// Elements on two ranks, where each parameter takes a multiple of 64, and each shard too.
constexpr std::int64_t shared = 2432;    // the embedding's 101 x 24
constexpr std::int64_t positions = 384;  // 16 x 24
constexpr std::int64_t block = 4 * 64 + 1728 + 128 + 576 + 64 + 2304 + 128 + 2304 + 64;
constexpr std::int64_t last_norm = 2 * 64;
// With weights in two tiles: 12 x 72, 12 x 24, 12 x 96 and 48 x 24 elements each.
constexpr std::int64_t rest_of_block = 4 * 64 + 128 + 64 + 128 + 64;
constexpr std::int64_t largest_tile = 1152;
constexpr std::int64_t all_tiles = 6 * 2 * (896 + 384 + 1152 + 1152);

std::int64_t gather_buffers(std::int64_t splits, const zero::Overlap& overlap) {
  const model::Model model = test::toy_gpt2(DType::f32, splits);
  return zero::GatherBuffers::bytes(zero::FlatLayout(model, {.world = 2}), overlap) / 4;
}

std::int64_t buckets(std::int64_t splits, std::int64_t numel, bool overlap) {
  const model::Model model = test::toy_gpt2(DType::f32, splits);
  return zero::ShardedGradients::buffer_bytes(zero::FlatLayout(model, {.world = 2}),
                                              {.bucket_numel = numel, .overlap = overlap}, {}) /
         4;
}

}  // namespace

TEST_CASE("GatherBuffers: one or two of the largest segment and all that are shared",
          "[zero][memory]") {
  const zero::Overlap ahead{.enabled = true, .prefetch_numel = 1};
  CHECK(gather_buffers(1, {}) == block + shared);
  CHECK(gather_buffers(1, ahead) == 2 * block + shared);
  CHECK(gather_buffers(1, {.enabled = true}) == block + shared);
  CHECK(gather_buffers(1, {.enabled = false, .prefetch_numel = 1}) == block + shared);
  zero::Overlap limited = ahead;
  limited.live_numel = 2 * block;
  CHECK(gather_buffers(1, limited) == 2 * block + shared);
  limited.live_numel = 2 * block - 1;
  CHECK(gather_buffers(1, limited) == block + shared);
  CHECK(gather_buffers(2, {}) == rest_of_block + largest_tile + shared);
  CHECK(gather_buffers(2, ahead) == 2 * (rest_of_block + largest_tile) + shared);
}

TEST_CASE("GatherBuffers: elements are of the dtype of the model", "[zero][memory]") {
  const model::Model model = test::toy_gpt2(DType::bf16);
  CHECK(zero::GatherBuffers::bytes(zero::FlatLayout(model, {.world = 2}), {}) ==
        2 * (block + shared));
}

TEST_CASE("ShardedGradients: buckets hold the given size and at least one part", "[zero][memory]") {
  CHECK(buckets(1, 0, false) == block + shared);
  CHECK(buckets(1, block, false) == block + shared);
  CHECK(buckets(1, block + 1, false) == block + 1 + shared);
  CHECK(buckets(1, block + 1, true) == 2 * (block + 1) + shared);
  CHECK(buckets(1, many, false) == positions + 6 * block + last_norm + shared);
  CHECK(buckets(2, 0, false) == rest_of_block + largest_tile + shared);
  CHECK(buckets(2, 1000, true) == 2 * (1000 + largest_tile) + shared);
  CHECK(buckets(2, many, false) == positions + 6 * rest_of_block + last_norm + all_tiles + shared);
}
