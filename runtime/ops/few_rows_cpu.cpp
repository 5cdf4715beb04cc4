#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>

#include "runtime/numeric/parallel_for.h"
#include "runtime/ops/blocks16.h"
#include "runtime/ops/few_rows.h"
#include "runtime/ops/simd.h"

namespace dstrain::ops {
namespace {

// Names: a tile is a group of rows of a times a group of columns of b, whose sums stay in registers
// while K runs. A step is the elements along K in 64 bytes of a.

#define DSTRAIN_UNROLL _Pragma("GCC unroll 16")
#define DSTRAIN_INLINE_BODY __attribute__((always_inline))

constexpr std::int64_t lanes = 16;

/// Arrays with the sizes of a tile.
template <class T, int count>
using Row = T[static_cast<std::size_t>(count)];
template <int rows, int columns>
using Sums = Floats16[static_cast<std::size_t>(rows)][static_cast<std::size_t>(columns)];

struct Range {
  std::int64_t begin;
  std::int64_t end;
  [[nodiscard]] std::int64_t count() const { return end - begin; }
};

/// Products of f32 elements of a with elements T of b, widened. `sums`: vectors of sums that fit
/// the registers.
template <class T, int sums>
struct Widened {
  using Left = float;
  using Right = T;
  using Vector = Floats16;
  static constexpr int sums_max = sums;
  static constexpr std::int64_t step = 16;
  static constexpr std::int64_t b_rows = 1;  ///< that are multiplied at once

  DSTRAIN_INLINE static void load_left(const float* from, Vector& to) {
    std::memcpy(&to, from, sizeof to);
#if DSTRAIN_SIMD_DISPATCH
    if constexpr (sums >= 16) {  // held in a register, or else GCC loads it again for each use
      Floats16 value = to;
      asm("" : "+v"(value));
      to = value;
    }
#endif
  }
  DSTRAIN_INLINE static void load(const T* from, Vector& to) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(from);
    if constexpr (std::is_same_v<T, Float16>) {
      Halves16 halves;
      std::memcpy(&halves, bytes, sizeof halves);
      widen(halves, to);
    } else {
      load16(bytes, std::is_same_v<T, float> ? DType::f32 : DType::bf16, to);
    }
  }
  template <std::size_t vectors>
  DSTRAIN_INLINE static void load_rows(const T* row, const T* /*next*/, Vector (&to)[vectors]) {
    DSTRAIN_UNROLL
    for (std::size_t j = 0; j < vectors; ++j) load(row + j * 16, to[j]);
  }
  DSTRAIN_INLINE static float factor(const float* from) {
    return *from;
  }
  /// `a`: a vector or a factor of all lanes.
  template <class A>
  DSTRAIN_INLINE static void add(Floats16& sum, const A& a, const Vector& b) {
    sum += a * b;
  }

 private:
  /// GCC 12 converts vectors of f16 one element at a time, so the instruction is named.
  DSTRAIN_INLINE static void widen(const Halves16& halves, Vector& to) {
#if DSTRAIN_SIMD_DISPATCH
    if constexpr (sums >= 16) {
      Floats16 value;
      asm("vcvtph2ps %1, %0" : "=v"(value) : "vm"(halves));
      to = value;
      return;
    }
#endif
    widen_f16(halves, to);
  }
};

#if DSTRAIN_SIMD_DISPATCH
/// Products of pairs of bf16, neighbors along K.
struct Dots {
  using Left = BFloat16;
  using Right = BFloat16;
  using Vector = Words16;
  static constexpr int sums_max = 16;
  static constexpr std::int64_t step = 32;
  static constexpr std::int64_t b_rows = 2;

  DSTRAIN_INLINE static void load_left(const BFloat16* from, Vector& to) { load(from, to); }
  DSTRAIN_INLINE static void load(const BFloat16* from, Vector& to) {
    std::memcpy(&to, from, sizeof to);
  }
  /// Makes pairs of the elements of two rows: of each eight columns, the first four in even vectors
  /// and the last four in odd ones. in_column_order() undoes this for the sums.
  template <std::size_t vectors>
  DSTRAIN_INLINE static void load_rows(const BFloat16* row,
                                       const BFloat16* next,
                                       Vector (&to)[vectors]) {
    DSTRAIN_UNROLL
    for (std::size_t j = 0; j < vectors; j += 2) {
      Halves32 x;
      Halves32 y;
      std::memcpy(&x, row + j * 16, sizeof x);
      std::memcpy(&y, next + j * 16, sizeof y);
      pair_up<0>(x, y, to[j], std::make_index_sequence<32>());
      pair_up<4>(x, y, to[j + 1], std::make_index_sequence<32>());
    }
  }
  DSTRAIN_INLINE static std::uint32_t factor(const BFloat16* from) {
    std::uint32_t pair;
    std::memcpy(&pair, from, sizeof pair);
    return pair;
  }
  DSTRAIN_INLINE static void add(Floats16& sum, std::uint32_t a, const Vector& b) {
    add(sum, a - Vector{}, b);
  }
  /// An operand of GCC's intrinsic changed its type in GCC 13.
  DSTRAIN_INLINE static void add(Floats16& sum, const Vector& a, const Vector& b) {
    Floats16 value = sum;
    asm("vdpbf16ps %2, %1, %0" : "+v"(value) : "v"(b), "v"(a));
    sum = value;
  }

 private:
  typedef std::uint16_t Halves32 __attribute__((vector_size(64)));

  template <std::size_t first, std::size_t... lane>
  DSTRAIN_INLINE static void pair_up(const Halves32& x,
                                     const Halves32& y,
                                     Vector& pairs,
                                     std::index_sequence<lane...> /*lanes*/) {
    pairs = (Vector)__builtin_shufflevector(
        x, y, (lane / 8 * 8 + first + lane % 8 / 2 + lane % 2 * 32)...);
  }
};
#endif

DSTRAIN_INLINE void in_column_order(float* sums) {
  Floats16 even;
  Floats16 odd;
  std::memcpy(&even, sums, sizeof even);
  std::memcpy(&odd, sums + lanes, sizeof odd);
  const Floats16 first =
      __builtin_shufflevector(even, odd, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const Floats16 second = __builtin_shufflevector(even, odd, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13,
                                                  14, 15, 28, 29, 30, 31);
  std::memcpy(sums, &first, sizeof first);
  std::memcpy(sums + lanes, &second, sizeof second);
}

/// The operands as the kernels read them. Step s of row i of a is at (s M + i) step; zeros fill the
/// last step.
template <class Terms>
struct Operands {
  const typename Terms::Left* a;
  const typename Terms::Right* b;
  MatmulShape shape;
};

/// Calls `body` with the first row and the number of rows of each group: 8, 4, 2 or 1.
template <class Terms, int most = std::min(8, Terms::sums_max), class Body>
DSTRAIN_INLINE void each_row_group(std::int64_t count, const Body& body, std::int64_t row = 0) {
  for (; row + most <= count; row += most) body(row, std::integral_constant<int, most>());
  if constexpr (most > 1) each_row_group<Terms, most / 2>(count, body, row);
}

template <int rows, int columns>
DSTRAIN_INLINE void load_sums(Sums<rows, columns>& sum, const float* from, std::int64_t row) {
  DSTRAIN_UNROLL
  for (int i = 0; i < rows; ++i) {
    DSTRAIN_UNROLL
    for (int j = 0; j < columns; ++j) {
      std::memcpy(&sum[i][j], from + i * row + j * lanes, sizeof sum[i][j]);
    }
  }
}

template <int rows, int columns>
DSTRAIN_INLINE void store_sums(const Sums<rows, columns>& sum, float* to, std::int64_t row) {
  DSTRAIN_UNROLL
  for (int i = 0; i < rows; ++i) {
    DSTRAIN_UNROLL
    for (int j = 0; j < columns; ++j) {
      std::memcpy(to + i * row + j * lanes, &sum[i][j], sizeof sum[i][j]);
    }
  }
}

/// Adds the bias to 16 sums of a row, or to the first few, and stores them.
DSTRAIN_INLINE void store_row(const FewRows& p, std::int64_t row, Range columns, Floats16& sum) {
  const bool whole = columns.count() == lanes;
  if (!p.bias.empty()) {
    Floats16 bias;
    const DType dtype = p.bias.dtype();
    const std::byte* const from = p.bias.data() + columns.begin * size_of(dtype);
    whole ? load16(from, dtype, bias) : load_some(from, dtype, columns.count(), bias);
    sum += bias;
  }
  const DType dtype = p.out.dtype();
  std::byte* const to = p.out.data() + (row * p.out.shape()[1] + columns.begin) * size_of(dtype);
  whole ? store16(sum, dtype, to) : store_some(sum, dtype, columns.count(), to);
}

// b transposed. Lane l of a sum adds elements l, l + step, ... of a column; a tree adds the lanes.

/// Columns that go through K together. Their sums are vectors [M][group_columns].
constexpr std::int64_t group_columns = 16;
constexpr std::int64_t group_row = group_columns * lanes;

/// A part of K. `ahead`: elements of b from it to the one that is read next.
struct Piece {
  Range k;
  std::int64_t ahead;
};

/// Adds the products of a row group and b, one vector per column.
template <class Terms, int rows, int columns>
DSTRAIN_INLINE void add_vectors(Sums<rows, columns>& sum,
                                const typename Terms::Left* left,
                                const Row<typename Terms::Vector, columns>& b) {
  DSTRAIN_UNROLL
  for (int i = 0; i < rows; ++i) {
    typename Terms::Vector a;
    Terms::load_left(left + i * Terms::step, a);
    DSTRAIN_UNROLL
    for (int j = 0; j < columns; ++j) Terms::add(sum[i][j], a, b[j]);
  }
}

template <class Terms, int rows, int columns>
DSTRAIN_INLINE void add_piece(const Operands<Terms>& p,
                              const Piece& piece,
                              std::int64_t row,
                              std::int64_t column,
                              float* sums) {
  constexpr int to_second_level = 2;  // more prefetches can be under way to it than to the first
  Sums<rows, columns> sum;
  load_sums<rows, columns>(sum, sums, group_row);
  Row<typename Terms::Vector, columns> b;
  const std::int64_t stride = p.shape.k;
  const auto* left = p.a + (piece.k.begin / Terms::step * p.shape.m + row) * Terms::step;
  const auto* const right = p.b + column * stride;
  std::int64_t k = piece.k.begin;
  for (; k + Terms::step <= piece.k.end; k += Terms::step) {
    DSTRAIN_UNROLL
    for (int j = 0; j < columns; ++j) {
      Terms::load(right + j * stride + k, b[j]);
      __builtin_prefetch(right + j * stride + k + piece.ahead, 0, to_second_level);
    }
    add_vectors<Terms, rows, columns>(sum, left, b);
    left += p.shape.m * Terms::step;
  }
  if (k < piece.k.end) {
    const auto bytes = static_cast<std::size_t>(piece.k.end - k) * sizeof *right;
    DSTRAIN_UNROLL
    for (int j = 0; j < columns; ++j) {
      typename Terms::Right last[Terms::step] = {};
      std::memcpy(last, right + j * stride + k, bytes);
      Terms::load(last, b[j]);
    }
    add_vectors<Terms, rows, columns>(sum, left, b);
  }
  store_sums<rows, columns>(sum, sums, group_row);
}

template <class Terms, int columns_most>
DSTRAIN_INLINE void add_group(const Operands<Terms>& p,
                              const Piece& piece,
                              Range group,
                              float* sums) {
  each_row_group<Terms>(p.shape.m, [&](std::int64_t row, auto rows) DSTRAIN_INLINE_BODY {
    constexpr int columns = std::min(columns_most, Terms::sums_max / rows());
    for (std::int64_t j = 0; j < group.count(); j += columns) {
      add_piece<Terms, rows(), columns>(p, piece, row, group.begin + j,
                                        sums + row * group_row + j * lanes);
    }
  });
}

/// Adds the lanes of 16 vectors: lane j of the first becomes the sum of vector j.
template <std::size_t width = 8>
DSTRAIN_INLINE void add_lanes(Floats16* vectors) {
  DSTRAIN_UNROLL
  for (std::size_t j = 0; j < width; ++j) {
    swap_row_blocks<width>(vectors[j], vectors[j + width], std::make_index_sequence<16>());
    vectors[j] += vectors[j + width];
  }
  if constexpr (width > 1) add_lanes<width / 2>(vectors);
}

/// Returns the length of the equal pieces of K whose part of a fits the first-level cache beside
/// the sums.
template <class Terms>
std::int64_t piece_length(const MatmulShape& shape) {
  constexpr std::int64_t a_bytes = 16384;
  const std::int64_t steps_most = a_bytes / 64 / shape.m;
  const std::int64_t steps = (shape.k + Terms::step - 1) / Terms::step;
  const std::int64_t pieces = (steps + steps_most - 1) / steps_most;
  return (steps + pieces - 1) / pieces * Terms::step;
}

template <class Terms>
DSTRAIN_INLINE void multiply_transposed(const FewRows& product,
                                        const Operands<Terms>& p,
                                        Range columns) {
  const std::int64_t length = piece_length<Terms>(p.shape);
  alignas(64) float sums[few_rows_max * group_row];
  for (std::int64_t begin = columns.begin; begin < columns.end; begin += group_columns) {
    const Range group{begin, std::min(columns.end, begin + group_columns)};
    std::fill_n(sums, p.shape.m * group_row, 0.0F);
    for (std::int64_t k = 0; k < p.shape.k; k += length) {
      const bool last = k + length >= p.shape.k;
      const Piece piece{{k, std::min(p.shape.k, k + length)},
                        last ? group_columns * p.shape.k - k : length};
      group.count() == group_columns ? add_group<Terms, 8>(p, piece, group, sums)
                                     : add_group<Terms, 1>(p, piece, group, sums);
    }
    for (std::int64_t i = 0; i < p.shape.m; ++i) {
      Floats16 vectors[group_columns];
      std::memcpy(vectors, sums + i * group_row, sizeof vectors);
      add_lanes(vectors);
      store_row(product, i, group, vectors[0]);
    }
  }
}

// b not transposed. The lanes of a sum are columns, and K runs one or two rows of b at a time.

/// Columns that go through K together. Rows of their sums are `strip_row` apart, which spreads them
/// over the sets of the cache.
constexpr std::int64_t strip_columns = 512;
constexpr std::int64_t strip_row = strip_columns + 16;

/// Rows of b and the steps of a that they are multiplied by.
template <class Terms>
struct RowBlock {
  static constexpr std::int64_t rows_most = 2 * Terms::step;
  const typename Terms::Left* a;
  std::int64_t m;
  const typename Terms::Right* b;
  std::int64_t stride;
  std::int64_t rows;
  const typename Terms::Right* next;  ///< rows to prefetch meanwhile, which may not exist
  std::int64_t next_stride;
};

/// Adds the products of a row group and one row of b, or two.
template <class Terms, int rows, int vectors>
DSTRAIN_INLINE void add_rows(Sums<rows, vectors>& sum,
                             const typename Terms::Left* left,
                             const Row<typename Terms::Vector, vectors>& b) {
  DSTRAIN_UNROLL
  for (int i = 0; i < rows; ++i) {
    const auto factor = Terms::factor(left + i * Terms::step);
    DSTRAIN_UNROLL
    for (int j = 0; j < vectors; ++j) Terms::add(sum[i][j], factor, b[j]);
  }
}

template <class Terms, int rows, int vectors>
DSTRAIN_INLINE void add_block(const RowBlock<Terms>& block,
                              std::int64_t row,
                              std::int64_t column,
                              float* sums) {
  using Right = typename Terms::Right;
  constexpr int to_second_level = 2;
  constexpr int line = 64 / sizeof(Right);
  constexpr int width = vectors * lanes;
  Sums<rows, vectors> sum;
  load_sums<rows, vectors>(sum, sums, strip_row);
  Row<typename Terms::Vector, vectors> b;
  const Right* right = block.b + column;
  const Right* next = block.next + column;
  std::int64_t k = 0;
  const auto left = [&] {
    return block.a + (k / Terms::step * block.m + row) * Terms::step + k % Terms::step;
  };
  for (; k + Terms::b_rows <= block.rows; k += Terms::b_rows) {
    Terms::load_rows(right, right + block.stride, b);
    DSTRAIN_UNROLL
    for (int i = 0; i < Terms::b_rows; ++i) {
      DSTRAIN_UNROLL
      for (int j = 0; j < width; j += line) __builtin_prefetch(next + j, 0, to_second_level);
      next += block.next_stride;
    }
    add_rows<Terms, rows, vectors>(sum, left(), b);
    right += Terms::b_rows * block.stride;
  }
  if (k < block.rows) {
    const Row<Right, width> zeros{};
    Terms::load_rows(right, zeros, b);
    add_rows<Terms, rows, vectors>(sum, left(), b);
  }
  store_sums<rows, vectors>(sum, sums, strip_row);
}

template <class Terms>
DSTRAIN_INLINE void add_strip(const RowBlock<Terms>& block, Range strip, float* sums) {
  constexpr std::int64_t narrow = Terms::b_rows * lanes;
  const std::int64_t whole = strip.begin + strip.count() / narrow * narrow;
  typename Terms::Right edge[RowBlock<Terms>::rows_most * narrow];
  RowBlock<Terms> last = block;
  if (whole < strip.end) {  // the last columns of b: copied, and zeros beside them
    std::fill(std::begin(edge), std::end(edge), typename Terms::Right{});
    for (std::int64_t k = 0; k < block.rows; ++k) {
      std::memcpy(edge + k * narrow, block.b + k * block.stride + whole,
                  static_cast<std::size_t>(strip.end - whole) * sizeof *edge);
    }
    last.b = edge;
    last.stride = narrow;
    last.next = edge;
    last.next_stride = 0;
  }
  each_row_group<Terms>(block.m, [&](std::int64_t row, auto rows) DSTRAIN_INLINE_BODY {
    constexpr int fastest = 2;  // for memory, also if more sums fit the registers
    constexpr int vectors =
        std::max(static_cast<int>(Terms::b_rows), std::min(fastest, Terms::sums_max / rows()));
    constexpr std::int64_t wide = vectors * lanes;
    std::int64_t column = strip.begin;
    float* to = sums + row * strip_row;
    for (; column + wide <= whole; column += wide, to += wide) {
      add_block<Terms, rows(), vectors>(block, row, column, to);
    }
    for (; column < whole; column += narrow, to += narrow) {
      add_block<Terms, rows(), Terms::b_rows>(block, row, column, to);
    }
    if (whole < strip.end) add_block<Terms, rows(), Terms::b_rows>(last, row, 0, to);
  });
}

template <class Terms>
DSTRAIN_INLINE void multiply_plain(const FewRows& product,
                                   const Operands<Terms>& p,
                                   Range columns) {
  constexpr std::int64_t rows_most = RowBlock<Terms>::rows_most;
  alignas(64) float sums[few_rows_max * strip_row];
  for (std::int64_t begin = columns.begin; begin < columns.end; begin += strip_columns) {
    const Range strip{begin, std::min(columns.end, begin + strip_columns)};
    std::fill_n(sums, p.shape.m * strip_row, 0.0F);
    const auto* const next_strip = p.b + (strip.end < columns.end ? strip_columns : 0);
    for (std::int64_t k = 0; k < p.shape.k; k += rows_most) {
      const auto* const rows = p.b + k * p.shape.n;
      const bool more = k + rows_most < p.shape.k;
      add_strip<Terms>({.a = p.a + k * p.shape.m,
                        .m = p.shape.m,
                        .b = rows,
                        .stride = p.shape.n,
                        .rows = std::min(rows_most, p.shape.k - k),
                        .next = more ? rows + rows_most * p.shape.n : next_strip,
                        .next_stride = p.shape.n},
                       strip, sums);
    }
    for (std::int64_t i = 0; i < p.shape.m; ++i) {
      for (std::int64_t j = 0; j < strip.count(); j += lanes) {
        float* const at = sums + i * strip_row + j;
        if (Terms::b_rows == 2 && j % (2 * lanes) == 0) in_column_order(at);
        Floats16 sum;
        std::memcpy(&sum, at, sizeof sum);
        store_row(product, i, {begin + j, std::min(strip.end, begin + j + lanes)}, sum);
      }
    }
  }
}

template <class Terms>
DSTRAIN_INLINE void multiply_as(const FewRows& p, const std::byte* packed, Range columns) {
  const Operands<Terms> operands{reinterpret_cast<const typename Terms::Left*>(packed),
                                 reinterpret_cast<const typename Terms::Right*>(p.b.data()),
                                 {.m = p.a.shape()[0], .n = p.out.shape()[1], .k = p.a.shape()[1]}};
  p.b_transposed ? multiply_transposed<Terms>(p, operands, columns)
                 : multiply_plain<Terms>(p, operands, columns);
}

template <int sums>
DSTRAIN_INLINE void multiply_widened(const FewRows& p, const std::byte* packed, Range columns) {
  switch (p.b.dtype()) {
    case DType::bf16:
      return multiply_as<Widened<BFloat16, sums>>(p, packed, columns);
    case DType::f16:
      return multiply_as<Widened<Float16, sums>>(p, packed, columns);
    default:
      return multiply_as<Widened<float, sums>>(p, packed, columns);
  }
}

// The loader picks the last that the machine can run; see simd.h on the sanitizers. A vector is
// four registers of 16, two of 16, or one of 32.
#define DSTRAIN_FEW_ROWS_KERNEL(target_name, sums)                \
  __attribute__((target(target_name))) void multiply_columns(     \
      const FewRows& p, const std::byte* packed, Range columns) { \
    multiply_widened<sums>(p, packed, columns);                   \
  }

DSTRAIN_FEW_ROWS_KERNEL("default", 2)
#if DSTRAIN_SIMD_DISPATCH
DSTRAIN_FEW_ROWS_KERNEL("arch=x86-64-v3", 4)
DSTRAIN_FEW_ROWS_KERNEL("arch=x86-64-v4", 16)

__attribute__((target("arch=x86-64-v4,avx512bf16"))) void multiply_columns_by_dots(
    const FewRows& p, const std::byte* packed, Range columns) {
  multiply_as<Dots>(p, packed, columns);
}
#else
void multiply_columns_by_dots(const FewRows& p, const std::byte* packed, Range columns) {
  multiply_columns(p, packed, columns);
}
#endif

/// Packs a as Operands describes.
DSTRAIN_SIMD_CLONES void pack_rows(const FewRows& p, std::byte* packed) {
  constexpr std::int64_t step_bytes = 64;
  const std::int64_t m = p.a.shape()[0];
  const std::int64_t k = p.a.shape()[1];
  const DType dtype = p.a.dtype();
  const std::int64_t step = step_bytes / (p.dots ? 2 : 4);
  for (std::int64_t i = 0; i < m; ++i) {
    std::byte* to = packed + i * step_bytes;
    const std::byte* from = p.a.data() + i * k * size_of(dtype);
    for (std::int64_t begin = 0; begin < k; begin += step) {
      const std::int64_t count = std::min(step, k - begin);
      if (p.dots) {
        std::memset(to, 0, step_bytes);
        std::memcpy(to, from, static_cast<std::size_t>(count * 2));
      } else {
        Floats16 values;
        count == step ? load16(from, dtype, values) : load_some(from, dtype, count, values);
        std::memcpy(to, &values, sizeof values);
      }
      from += step * size_of(dtype);
      to += m * step_bytes;
    }
  }
}

/// Returns memory for m rows of k floats, rounded up to whole steps.
std::byte* aligned_rows(PackedRows& packed, std::int64_t m, std::int64_t k) {
  constexpr std::size_t alignment = 64;
  const auto bytes = static_cast<std::size_t>(m * round_up(k, lanes)) * sizeof(float);
  packed.resize(std::max(packed.size(), (bytes + alignment) / sizeof(float)));
  void* start = packed.data();
  std::size_t space = packed.size() * sizeof(float);
  return static_cast<std::byte*>(std::align(alignment, bytes, start, space));
}

}  // namespace

void multiply_few_rows(const FewRows& p, PackedRows& packed) {
  constexpr std::int64_t unit = 32;  // whole cache lines of a row of b
  constexpr Bytes worth_a_thread = 32 * kibibyte;
  const std::int64_t n = p.out.shape()[1];
  std::byte* const a = aligned_rows(packed, p.a.shape()[0], p.a.shape()[1]);
  pack_rows(p, a);
  const std::int64_t units = (n + unit - 1) / unit;
  const std::int64_t parts =
      std::min({std::int64_t{compute_threads()}, units, 1 + p.b.bytes() / worth_a_thread});
  parallel_for(parts, [&](std::int64_t part) {
    const Range columns{units * part / parts * unit,
                        std::min(n, units * (part + 1) / parts * unit)};
    p.dots ? multiply_columns_by_dots(p, a, columns) : multiply_columns(p, a, columns);
  });
}

}  // namespace dstrain::ops
