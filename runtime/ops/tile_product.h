#pragma once
#include <cstdint>

namespace dstrain::ops {

/// The operands of a small matrix product in cache, for kernels. Element (i, k) of a is at a[i *
/// a_row + k * a_column], so that a may be transposed; b and c have contiguous rows. Fast if M is a
/// multiple of 8 and N of 16.
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
  const float* factors = nullptr;           ///< (N), for Into::scale_add
  bool rounds = false;                      ///< a and b may be rounded to bf16 if that is faster
  const std::uint32_t* a_packed = nullptr;  ///< a packed by pack_left, or null
  const std::uint32_t* b_packed = nullptr;  ///< b packed by pack_right, or null
};

/// The new value of c: a b, c + a b, or c diag(factors) + a b.
enum class Into : std::int8_t { store, add, scale_add };

/// Runs on the calling thread. The order of additions depends only on the sizes; products and sums
/// are fused if the machine can.
void multiply_tile(const TileProduct& tile, Into into = Into::store);

/// While one of these exists, the calling thread's products are set up once, not each for itself.
class TileProductScope {
 public:
  TileProductScope();
  ~TileProductScope();
  TileProductScope(const TileProductScope&) = delete;
  TileProductScope& operator=(const TileProductScope&) = delete;
};

/// Whether products that may round do so here, because bf16 dot products (AMX, AMD's AVX512_BF16)
/// are faster. They gain from operands that are packed once for many products.
bool rounds_products();

/// Most rows, columns and k of a packed operand.
inline constexpr std::int64_t packed_edge = 64;
/// Words of a packed operand, whatever its sizes. A word is a pair of neighbours along k, rounded
/// to bf16; a row holds packed_edge / 2 words, and a pair of rows of b holds packed_edge words.
inline constexpr std::int64_t packed_words = packed_edge * packed_edge / 2;

/// An operand: element (i, j) is at values[i * row + j * column].
struct TileOperand {
  const float* values;
  std::int64_t row;
  std::int64_t column;  ///< 1 for a right operand
  std::int64_t rows;
  std::int64_t columns;
};

/// Packs a left operand; its row i starts at word i * packed_edge / 2. Both functions require
/// rounds_products().
void pack_left(const TileOperand& a, std::uint32_t* packed);
/// Packs a right operand; its row k, a multiple of 32, and column n start at word k / 2 *
/// packed_edge + n.
void pack_right(const TileOperand& b, std::uint32_t* packed);

}  // namespace dstrain::ops
