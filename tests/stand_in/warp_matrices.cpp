#include "tests/stand_in/warp_matrices.h"

#include <algorithm>
#include <cstring>

#include "runtime/tensor/bfloat16.h"
#include "runtime/tensor/float16.h"
#include "tests/stand_in/blocks.h"

namespace dstrain::stand_in {
namespace {

using Operands = std::array<void*, 32>;

struct Load {
  const void* row;
  std::uint32_t* pairs;
  Order order;
};

struct Product {
  const std::uint32_t* a;
  const std::uint32_t* b;
  float* c;
};

std::uint16_t half_of(const std::uint32_t* registers, std::size_t i) {
  return static_cast<std::uint16_t>(registers[i / 2] >> (16 * (i % 2)));
}

/// Element `column` of row `row` of the matrix `index`.
std::uint16_t loaded(const Operands& lanes,
                     std::size_t index,
                     std::size_t row,
                     std::size_t column) {
  std::uint16_t element = 0;
  const auto* const address = static_cast<const Load*>(lanes[8 * index + row])->row;
  std::memcpy(&element, static_cast<const std::byte*>(address) + 2 * column, 2);
  return element;
}

void load_all(const Operands& lanes) {
  for (const void* lane : lanes) require_shared(static_cast<const Load*>(lane)->row, 16);
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const auto& load = *static_cast<Load*>(lanes[lane]);
    const std::size_t g = lane / 4;
    const std::size_t t = lane % 4;
    for (std::size_t j = 0; j < 4; ++j) {
      const bool plain = load.order == Order::plain;
      const std::uint32_t first = plain ? loaded(lanes, j, g, 2 * t) : loaded(lanes, j, 2 * t, g);
      const std::uint32_t second =
          plain ? loaded(lanes, j, g, 2 * t + 1) : loaded(lanes, j, 2 * t + 1, g);
      load.pairs[j] = first | (second << 16U);
    }
  }
}

template <class T>
void multiply_all(const Operands& lanes) {
  float a[16][16];
  float b[16][8];
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const auto& own = *static_cast<const Product*>(lanes[lane]);
    const std::size_t g = lane / 4;
    const std::size_t t = lane % 4;
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t row = i == 0 || i == 1 || i == 4 || i == 5 ? g : g + 8;
      const std::size_t column = 2 * t + i % 2 + (i >= 4 ? 8 : 0);
      a[row][column] = to_float(T{half_of(own.a, i)});
    }
    for (std::size_t i = 0; i < 4; ++i) {
      b[2 * t + i % 2 + (i >= 2 ? 8 : 0)][g] = to_float(T{half_of(own.b, i)});
    }
  }
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    const auto& own = *static_cast<const Product*>(lanes[lane]);
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t row = i < 2 ? lane / 4 : lane / 4 + 8;
      const std::size_t column = 2 * (lane % 4) + i % 2;
      float sum = own.c[i];
      for (std::size_t k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      own.c[i] = sum;
    }
  }
}

}  // namespace

void load_matrices(const void* row, std::uint32_t (&pairs)[4], Order order) {
  Load load{row, pairs, order};
  run_collective(load_all, &load);
}

template <class T>
void multiply_add(const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], float (&c)[4]) {
  Product product{a, b, c};
  run_collective(multiply_all<T>, &product);
}
template void multiply_add<BFloat16>(const std::uint32_t (&)[4],
                                     const std::uint32_t (&)[2],
                                     float (&)[4]);
template void multiply_add<Float16>(const std::uint32_t (&)[4],
                                    const std::uint32_t (&)[2],
                                    float (&)[4]);

}  // namespace dstrain::stand_in
