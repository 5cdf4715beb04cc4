#include "runtime/tensor/arena.h"

#include <vector>

#include "runtime/numeric/philox.h"
#include "runtime/tensor/host_access.h"
#include "tests/support/catch.h"

namespace dstrain {
namespace {

TensorView view_of(std::vector<std::byte>& block) {
  return HostView(block.data(), DType::u8, {std::ssize(block)});
}

/// Cuts a few tensors of sizes that follow from the seed.
std::vector<TensorView> cut(Arena& arena, std::uint64_t seed) {
  constexpr std::array dtypes{DType::f32, DType::u8, DType::bf16, DType::i64};
  std::vector<TensorView> views;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const auto extent = [&](std::uint32_t axis) {
      return static_cast<std::int64_t>(
          uniform_below({.seed = seed, .stream = axis, .index = i}, 9));
    };
    views.push_back(arena.take({extent(0), extent(1)}, dtypes[i % dtypes.size()]));
  }
  return views;
}

}  // namespace

TEST_CASE("Arena: measuring gives what cutting needs", "[tensor][arena]") {
  const auto seed = GENERATE(range(std::uint64_t{0}, std::uint64_t{20}));
  CAPTURE(seed);
  Arena measure;
  const auto measured = cut(measure, seed);
  std::vector<std::byte> block(static_cast<std::size_t>(measure.used()));
  Arena arena(view_of(block));
  const auto views = cut(arena, seed);
  CHECK(arena.used() == measure.used());
  const std::byte* free_from = block.data();
  for (std::size_t i = 0; i < views.size(); ++i) {
    CHECK(measured[i].empty());
    CHECK(views[i].shape() == measured[i].shape());
    CHECK(views[i].dtype() == measured[i].dtype());
    const std::byte* const begin = host_access(views[i]).data();
    CHECK((begin - block.data()) % 64 == 0);
    CHECK(begin >= free_from);  // no overlap
    free_from = begin + views[i].bytes();
  }
  CHECK(free_from <= block.data() + block.size());
  CHECK(arena.rest().bytes() == 0);
}

TEST_CASE("Arena: a block that is too small is a bug", "[tensor][arena]") {
  std::vector<std::byte> block(128);
  Arena arena(view_of(block));
  arena.take({16});
  arena.take({1});
  CHECK(arena.used() == 128);
  CHECK_THROWS_WITH(arena.take({1}),
                    Catch::Matchers::ContainsSubstring("(1) in a block of 128 bytes"));
}

}  // namespace dstrain
