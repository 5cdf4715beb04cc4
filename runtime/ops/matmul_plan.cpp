#include "runtime/ops/matmul_plan.h"

#include <algorithm>

#include "runtime/ops/panels.h"

namespace dstrain::ops {
namespace {

constexpr Bytes cached_share = 2 * mebibyte;
constexpr std::int64_t cached_rows_min = 64;
constexpr std::int64_t piece_rows = 16;

/// Returns how many rows of `row_bytes` stay in the second-level cache next to the panels.
std::int64_t cached_rows(Bytes row_bytes) {
  return std::max(cached_rows_min, cached_share / row_bytes);
}

/// Splits `count` into equal pieces of at most `largest`, rounded up to a multiple of 16.
std::int64_t even_piece(std::int64_t count, std::int64_t largest) {
  if (count <= largest) return count;
  const std::int64_t pieces = (count + largest - 1) / largest;
  return round_up((count + pieces - 1) / pieces, piece_rows);
}

/// Returns the room for a piece of `count` rows of which at most cached_rows() are at work. More
/// rows never need less, as they do in pieces: a unit that is planned for a batch runs smaller
/// ones too.
Bytes piece_bytes(std::int64_t count, Bytes row_bytes) {
  const Bytes most =
      std::max(cached_share, cached_rows_min * row_bytes) + (piece_rows - 1) * row_bytes;
  return round_up(std::min(count * row_bytes, most), 64);
}

/// Whether b is packed. Reading panels is up to a tenth faster than reading rows, and twice as fast
/// if rows a multiple of 4 KiB apart map to the same cache sets; packing costs as much as 40 to 60
/// rows of a. In bf16 oneDNN would pack pairs of rows itself, again for each block.
bool packs_b(const MatmulArgs& args, DType compute) {
  constexpr std::int64_t rows_worth_packing = 1280;
  constexpr std::int64_t rows_worth_packing_slow = 64;
  constexpr Bytes page = 4096;
  if (args.b.dtype() != compute) return true;
  const bool aliased =
      !args.b_transposed && args.b.shape()[1] * size_of(args.b.dtype()) % page == 0;
  const bool slow = aliased || compute == DType::bf16;
  return args.out.shape()[0] >= (slow ? rows_worth_packing_slow : rows_worth_packing);
}

/// Whether oneDNN would transpose a again for several blocks of columns, as it does in bf16.
bool transposes_often(const MatmulArgs& args, DType compute) {
  constexpr std::int64_t columns_worth_copying = 1536;
  return args.a_transposed && compute == DType::bf16 &&
         args.out.shape()[1] >= columns_worth_copying;
}

}  // namespace

DType matmul_compute(const MatmulArgs& args, cpu::Bf16Products bf16_products) {
  const auto either = [&args](DType dtype) {
    return args.a.dtype() == dtype || args.b.dtype() == dtype;
  };
  const bool rounded = either(DType::bf16) && !either(DType::f16);  // bf16 cannot hold f16
  return rounded && bf16_products == cpu::Bf16Products::native ? DType::bf16 : DType::f32;
}

MatmulPlan plan_matmul(const MatmulArgs& args, DType compute) {
  constexpr std::int64_t k_piece_max = 2048;
  const auto [m, n, k] = matmul_shape(args);
  const bool rounds_out = is_half(args.out.dtype()) && args.out.dtype() != compute;
  const bool copies_a = args.a.dtype() != compute || (rounds_out && args.a_transposed) ||
                        transposes_often(args, compute);
  const bool sums_rows = args.a_transposed && !args.b_transposed && !rounds_out;
  MatmulPlan plan{};
  plan.k_piece = sums_rows ? even_piece(k, k_piece_max) : k;
  std::int64_t largest = m;
  if (copies_a) largest = std::min(largest, cached_rows(plan.k_piece * size_of(compute)));
  if (rounds_out) largest = std::min(largest, cached_rows(n * size_of(compute)));
  plan.m_piece = even_piece(m, largest);
  const auto aligned = [](Bytes bytes) {
    return round_up(bytes, 64);
  };
  if (packs_b(args, compute)) {
    plan.panels = panels_numel(plan.k_piece, n, compute) * size_of(compute);
  }
  plan.a_rows = copies_a ? piece_bytes(m, plan.k_piece * size_of(compute)) : 0;
  plan.out_rows = rounds_out ? piece_bytes(m, n * size_of(DType::f32)) : 0;
  plan.bias = is_half(args.bias.dtype()) ? aligned(n * size_of(DType::f32)) : 0;
  return plan;
}

}  // namespace dstrain::ops
