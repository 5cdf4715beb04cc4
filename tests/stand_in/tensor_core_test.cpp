// Tensor core products of numbers with exact sums.
#include "runtime/ops/cuda/tensor_core.h"

#include <algorithm>
#include <vector>

#include "tests/stand_in/blocks.h"
#include "tests/support/catch.h"
#include "tests/support/variable.h"

namespace dstrain::ops::gpu {
namespace {

/// Small integers that differ between places.
int number(int row, int column) {
  return (row * 7 + column * 3) % 19 - 9 + (row * column) % 5;
}

template <class T, int rows, int columns>
void fill(HalfTile<T, rows, columns>& tile, int seed) {
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      tile.element[row][column] = from_float<T>(static_cast<float>(number(row + seed, column)));
    }
  }
}

template <int rows, int columns>
using Numbers = std::array<std::array<float, columns>, rows>;

template <int count, int columns>
void write(const FragmentC (&c)[count], Numbers<16, columns>& to) {
  for (int n = 0; n < count; ++n) {
    for (int i = 0; i < 4; ++i) {
      const int row = fragment_row() + i / 2 * 8;
      to.at(static_cast<std::size_t>(row))
          .at(static_cast<std::size_t>(n * 8 + fragment_column() + i % 2)) = c[n].sums[i];
    }
  }
}

template <class Body>
void run_warp(std::size_t shared_bytes,
              const Body& body,
              const stand_in::Draws& draws = stand_in::Draws::next()) {
  stand_in::run_grid({1, 1, 1, warp_threads, shared_bytes}, body, draws);
}

template <class T>
struct Tiles {
  HalfTile<T, 32, 48> a;
  HalfTile<T, 24, 48> b;
};

}  // namespace

TEMPLATE_TEST_CASE("Tensor cores: a product with a transposed tile is exact",
                   "[stand_in]",
                   BFloat16,
                   Float16) {
  using T = TestType;
  Numbers<16, 32> actual{};
  run_warp(sizeof(Tiles<T>), [&] {
    auto& s = shared<Tiles<T>>();
    fill(s.a, 1);
    fill(s.b, 2);
    sync();
    FragmentC c[4]{};
    const FragmentA a = load_a(s.a, 16, 32);
    const TwoFragmentsB b = load_b_transposed(s.b, 8, 16);
    c[2].sums[1] = 100;
    multiply_add<T>(c[2], a, b.first);
    multiply_add<T>(c[3], a, b.second);
    write<4, 32>(c, actual);
  });
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 16; ++column) {
      int expected = row < 8 && column < 8 && column % 2 == 1 ? 100 : 0;
      for (int k = 0; k < 16; ++k) {
        expected += number(17 + row, 32 + k) * number(10 + column, 16 + k);
      }
      CAPTURE(row, column);
      CHECK(actual.at(static_cast<std::size_t>(row)).at(static_cast<std::size_t>(16 + column)) ==
            static_cast<float>(expected));
    }
  }
}

TEMPLATE_TEST_CASE("Tensor cores: what a product gave is multiplied by a tile",
                   "[stand_in]",
                   BFloat16,
                   Float16) {
  using T = TestType;
  Numbers<16, 48> actual{};
  run_warp(sizeof(HalfTile<T, 32, 48>), [&] {
    auto& tile = shared<HalfTile<T, 32, 48>>();
    fill(tile, 3);
    sync();
    FragmentC a[1][4]{};  // 16 x 32
    for (int n = 0; n < 4; ++n) {
      for (int i = 0; i < 4; ++i) {
        a[0][n].sums[i] = static_cast<float>(
            number(fragment_row() + i / 2 * 8, n * 8 + fragment_column() + i % 2));
      }
    }
    FragmentC c[1][6]{};
    add_rounded_product<T>(a, tile, c);
    write<6, 48>(c[0], actual);
  });
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 48; ++column) {
      int expected = 0;
      for (int k = 0; k < 32; ++k) expected += number(row, k) * number(3 + k, column);
      CAPTURE(row, column);
      CHECK(actual.at(static_cast<std::size_t>(row)).at(static_cast<std::size_t>(column)) ==
            static_cast<float>(expected));
    }
  }
}

TEST_CASE("Tensor cores: matrices are loaded as lanes own them", "[stand_in]") {
  const bool transposed = GENERATE(false, true);
  CAPTURE(transposed);
  std::array<std::array<std::uint32_t, 4>, 32> loaded{};
  run_warp(sizeof(std::uint16_t) * 32 * 8, [&] {
    auto& rows = shared<std::uint16_t[32][8]>();  // four matrices, one below the other
    for (unsigned i = 0; i < 8; ++i) {
      rows[lane()][i] = static_cast<std::uint16_t>(static_cast<unsigned>(lane()) * 8 + i);
    }
    sync();
    std::uint32_t pairs[4];
    if (transposed) {
      load_transposed_matrices(rows[lane()], pairs);
    } else {
      load_matrices(rows[lane()], pairs);
    }
    for (std::size_t j = 0; j < 4; ++j)
      loaded.at(static_cast<std::size_t>(lane())).at(j) = pairs[j];
  });
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    for (std::uint32_t j = 0; j < 4; ++j) {
      const std::uint32_t g = lane / 4;
      const std::uint32_t t = lane % 4;
      const std::uint32_t first = 64 * j + (transposed ? 8 * (2 * t) + g : 8 * g + 2 * t);
      const std::uint32_t second = first + (transposed ? 8 : 1);
      CHECK(loaded.at(lane).at(j) == (first | (second << 16U)));
    }
  }
}

TEST_CASE("Tensor cores: copies come when they are waited for or sooner where that is drawn",
          "[stand_in]") {
  alignas(16) const std::array<float, 4> source{1, 2, 3, 4};
  float before = 0;
  std::array<float, 8> after{};
  const auto copy = [&] {
    auto& target = shared<float[8]>();
    if (lane() == 0) {
      start_copy(&target[0], source.data(), true);
      start_copy(&target[4], source.data(), false);
      before = target[0];
    }
    wait_for_copies();
    sync();
    if (lane() == 0) std::copy_n(&target[0], 8, after.data());
  };
  const std::array<float, 8> expected{1, 2, 3, 4, 0, 0, 0, 0};
  run_warp(32, copy, stand_in::Draws());
  CHECK(std::isnan(before));
  CHECK((after == expected));
  const test::Variable seed("DSTRAIN_STAND_IN_SEED", "1");
  int early = 0;
  for (int i = 0; i < 32; ++i) {
    after = {};
    run_warp(32, copy);
    CHECK((after == expected));
    early += std::isnan(before) ? 0 : 1;
  }
  CHECK(early > 0);
  CHECK(early < 32);
}

TEST_CASE("Blocks: a seed decides their order and that of their threads", "[stand_in]") {
  const auto order = [](const stand_in::Draws& draws) {
    std::vector<std::int64_t> ran;
    const auto body = [&] {
      ran.push_back(((block_z() * 2 + block_y()) * 3 + block_x()) * 70 + thread());
      sync();
      ran.push_back(-thread());
    };
    stand_in::run_grid({3, 2, 2, 70, 0}, body, draws);
    return ran;
  };
  const std::vector<std::int64_t> ascending = order({});
  CHECK(std::is_sorted(ascending.begin(), ascending.begin() + 70));
  std::vector<std::int64_t> sorted = ascending;
  std::ranges::sort(sorted);
  std::vector<std::vector<std::int64_t>> all{ascending};
  for (const std::string seed : {"1", "2"}) {
    const test::Variable variable("DSTRAIN_STAND_IN_SEED", seed);
    const stand_in::Draws draws = stand_in::Draws::next();
    std::vector<std::int64_t> drawn = order(draws);
    CHECK(drawn == order(draws));
    CHECK(std::ranges::find(all, drawn) == all.end());
    all.push_back(drawn);
    std::ranges::sort(drawn);
    CHECK(drawn == sorted);
  }
}

}  // namespace dstrain::ops::gpu
