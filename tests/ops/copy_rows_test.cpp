#include "runtime/ops/copy_rows.h"

#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"

using namespace dstrain;

TEST_CASE("CopyRows: columns leave a matrix and come back", "[ops][copy_rows]") {
  const std::int64_t rows = GENERATE(1, 7, 4000);
  const std::int64_t width = GENERATE(1, 12, 300);
  const std::int64_t first = width / 3;
  const std::int64_t count = width - first;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  std::vector<float> matrix = test::random_values(rows * width, 1, 1.0F);
  const std::vector<float> before = matrix;
  std::vector<float> taken(static_cast<std::size_t>(rows * count));
  const HostView whole(matrix, {rows, width});
  const HostView columns(taken, {rows, count});
  ops::copy_rows(whole.columns(first, count), columns, stream);
  bool equal = true;
  for (std::int64_t i = 0; i < rows * count; ++i) {
    const std::int64_t at = i / count * width + first + i % count;
    equal = equal && taken[static_cast<std::size_t>(i)] == matrix[static_cast<std::size_t>(at)];
    matrix[static_cast<std::size_t>(at)] = 0;
  }
  CHECK(equal);
  ops::copy_rows(columns, whole.columns(first, count), stream);
  CHECK((matrix == before));
}
