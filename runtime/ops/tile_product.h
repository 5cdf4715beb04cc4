#pragma once
#include <cstdint>

namespace dstrain::ops {

/// Operands of a small matrix product in cache, for kernels: element (i, k) of a lies at
/// a[i * a_row + k * a_column], so that a may be transposed; b and c have contiguous rows. Fast
/// where M is a multiple of 8 and N of 16.
struct TileProduct {
  float* c;  ///< (M, N), rows c_row apart
  std::int64_t c_row;
  const float* a;  ///< (M, K)
  std::int64_t a_row;
  std::int64_t a_column;
  const float* b;  ///< (K, N), rows b_row apart
  std::int64_t b_row;
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  const float* factors = nullptr;           ///< (N), of Into::scale_add
  bool rounds = false;                      ///< a and b may be rounded to bf16, where faster
  const std::uint32_t* a_packed = nullptr;  ///< a by pack_left, or null
  const std::uint32_t* b_packed = nullptr;  ///< b by pack_right, or null
};

/// What becomes of c: a b, c + a b, or c diag(factors) + a b.
enum class Into : std::int8_t { store, add, scale_add };

/// On the calling thread. The order of additions depends on the sizes alone; products and sums are
/// fused where the machine can.
void multiply_tile(const TileProduct& tile, Into into = Into::store);

/// Products of the calling thread are set up once while one of these lives, not each for itself.
class TileProductScope {
 public:
  TileProductScope();
  ~TileProductScope();
  TileProductScope(const TileProductScope&) = delete;
  TileProductScope& operator=(const TileProductScope&) = delete;
};

/// Whether products that may round do here, because bf16 dot products (AMX, AMD's AVX512_BF16) are
/// faster; they gain from operands packed once for many of them.
bool rounds_products();

/// Rows, columns and k of a packed operand are at most this.
inline constexpr std::int64_t packed_edge = 64;
/// What one takes, whatever its sizes. Pairs of neighbours along k, rounded to bf16, are a word;
/// a row, or a pair of rows of b, holds packed_edge / 2, or packed_edge, words.
inline constexpr std::int64_t packed_words = packed_edge * packed_edge / 2;

/// An operand: element (i, j) lies at values[i * row + j * column].
struct TileOperand {
  const float* values;
  std::int64_t row;
  std::int64_t column;  ///< 1 of a right operand
  std::int64_t rows;
  std::int64_t columns;
};

/// Packs a left operand; its row i begins i * packed_edge / 2 words on. Both only where
/// rounds_products().
void pack_left(const TileOperand& a, std::uint32_t* packed);
/// Packs a right operand; its row k, a multiple of 32, and column n begin k / 2 * packed_edge + n
/// words on.
void pack_right(const TileOperand& b, std::uint32_t* packed);

}  // namespace dstrain::ops
