// Rows of the table of biases, as T5Attention._relative_position_bucket of transformers has them.
#include "runtime/ops/relative_buckets.h"

#include <vector>

#include "tests/support/catch.h"

namespace dstrain {
namespace {

std::vector<std::int64_t> rows_of(const ops::RelativeBuckets& buckets) {
  std::vector<std::int64_t> rows;
  for (const std::int64_t distance :
       {-2000, -128, -91, -90, -64, -63, -46, -45, -32, -31, -23, -22, -16, -15, -12, -11,
        -8,    -7,   -1,  0,   1,   7,   8,   11,  12,  22,  23,  32,  45,  46,  64,  91}) {
    rows.push_back(buckets.row_of(distance));
  }
  return rows;
}

TEST_CASE("Relative buckets: their bounds are those of transformers", "[ops][attention]") {
  CHECK(rows_of({32, 128, true}) ==
        std::vector<std::int64_t>{15, 15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10, 9,  9,  8,
                                  8,  7,  1,  0,  17, 23, 24, 24, 25, 26, 27, 28, 28, 29, 30, 31});
  CHECK(rows_of({32, 128, false}) ==
        std::vector<std::int64_t>{31, 31, 29, 29, 26, 26, 24, 23, 21, 21, 18, 18, 16, 15, 12, 11,
                                  8,  7,  1,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0});
  CHECK(rows_of({6, 40, false}) == std::vector<std::int64_t>{5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5,
                                                             5, 4, 4, 4, 4, 4, 3, 1, 0, 0, 0,
                                                             0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

}  // namespace
}  // namespace dstrain
