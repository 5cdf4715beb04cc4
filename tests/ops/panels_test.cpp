#include "runtime/ops/panels.h"

#include <cstring>
#include <numeric>

#include "runtime/base/units.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/ops/convert.h"
#include "tests/support/catch.h"
#include "tests/support/random_values.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

struct PanelSizes {
  std::int64_t rows, columns;
};

std::vector<std::uint16_t> halves(const std::vector<float>& values, DType dtype) {
  std::vector<std::uint16_t> result;
  for (const float value : values) result.push_back(test::half_bits(value, dtype));
  return result;
}

/// The values that a matrix of `dtype` holds, as f32.
std::vector<float> held(const std::vector<float>& values, DType dtype) {
  std::vector<float> result;
  for (const float value : values) result.push_back(test::rounded(value, dtype));
  return result;
}

/// Reads element i of memory that holds `dtype`.
float element(const std::vector<std::byte>& memory, DType dtype, std::int64_t i) {
  if (dtype == DType::f32) return reinterpret_cast<const float*>(memory.data())[i];
  return test::half_value(reinterpret_cast<const std::uint16_t*>(memory.data())[i], dtype);
}

struct PanelCase {
  PanelSizes sizes;
  DType from;
  DType to;
  bool transposed;
};

PanelCase any_case() {
  PanelCase any{GENERATE(PanelSizes{1, 1}, PanelSizes{16, 64}, PanelSizes{17, 65},
                         PanelSizes{100, 130}, PanelSizes{33, 31}),
                GENERATE(DType::f32, DType::bf16, DType::f16), GENERATE(DType::f32, DType::bf16),
                GENERATE(false, true)};
  if (any.from == DType::f16) any.to = DType::f32;  // bf16 does not hold it
  return any;
}

/// A matrix as it is stored, and its values.
struct Stored {
  explicit Stored(const PanelCase& of)
      : wide(held(test::random_values(of.sizes.rows * of.sizes.columns, 7), of.from)),
        narrow(halves(wide, of.from)) {
    const Shape shape = of.transposed ? Shape{of.sizes.columns, of.sizes.rows}
                                      : Shape{of.sizes.rows, of.sizes.columns};
    matrix.view =
        of.from == DType::f32 ? HostView(wide, shape) : HostView(narrow.data(), of.from, shape);
    matrix.transposed = of.transposed;
  }
  [[nodiscard]] float at(std::int64_t row, std::int64_t column) const {
    const std::int64_t stride = matrix.view.shape()[1];
    return wide[static_cast<std::size_t>(matrix.transposed ? column * stride + row
                                                           : row * stride + column)];
  }
  std::vector<float> wide;
  std::vector<std::uint16_t> narrow;
  ops::StoredMatrix matrix;
};

TEST_CASE("Panels: each element has its place and padding is zero", "[ops][panels]") {
  const PanelCase of = any_case();
  const auto [rows, columns] = of.sizes;
  CAPTURE(rows, columns, of.from, of.to, of.transposed);
  const Stored stored(of);
  const std::int64_t numel = ops::panels_numel(rows, columns, of.to);
  std::vector<std::byte> panels(static_cast<std::size_t>(numel * size_of(of.to)), std::byte{0x55});
  ops::pack_panels(stored.matrix, of.to, panels.data());
  const std::int64_t padded_rows = round_up(rows, ops::panel_row_padding(of.to));
  const std::int64_t pair = of.to == DType::f32 ? 1 : 2;
  int wrong = 0;
  for (std::int64_t i = 0; i < padded_rows; ++i) {
    for (std::int64_t j = 0; j < round_up(columns, 64); ++j) {
      const bool inside = i < rows && j < columns;
      const float expected = inside ? held({stored.at(i, j)}, of.to)[0] : 0.0F;
      const std::int64_t place =
          j / 64 * padded_rows * 64 + i / pair * pair * 64 + j % 64 * pair + i % pair;
      if (element(panels, of.to, place) != expected) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("Panels: a range of rows is copied dense", "[ops][panels]") {
  const PanelCase of = any_case();
  const auto [rows, columns] = of.sizes;
  const ops::RowRange range{rows / 3, rows - rows / 3};
  CAPTURE(rows, columns, of.from, of.to, of.transposed);
  const Stored stored(of);
  std::vector<std::byte> copy(static_cast<std::size_t>(range.count * columns * size_of(of.to)));
  ops::convert_rows(stored.matrix, range, of.to, copy.data());
  int wrong = 0;
  for (std::int64_t i = 0; i < range.count; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const float expected = held({stored.at(range.begin + i, j)}, of.to)[0];
      if (element(copy, of.to, i * columns + j) != expected) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("Panels: every f16 is widened as it is read", "[ops][panels]") {
  std::vector<std::uint16_t> all(0x10000);
  std::iota(all.begin(), all.end(), std::uint16_t{0});
  const ops::StoredMatrix matrix{HostView(all.data(), DType::f16, {1024, 64}), false};
  std::vector<float> panels(all.size());
  ops::pack_panels(matrix, DType::f32, reinterpret_cast<std::byte*>(panels.data()));
  std::vector<float> plain(all.size());
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::convert(matrix.view, HostView(plain, {1024, 64}), stream);
  int wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float expected = to_float(Float16{all[i]});
    if (std::memcmp(&panels[i], &expected, 4) != 0) ++wrong;
    if (std::memcmp(&plain[i], &expected, 4) != 0) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("Panels: conversion rounds each element", "[ops][panels]") {
  const std::int64_t count = GENERATE(1, 16, 40, 20000);
  std::vector<float> values = test::random_values(count, 3);
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  std::vector<std::uint16_t> narrow(values.size());
  std::vector<float> back(values.size());
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const HostView narrow_view(narrow.data(), dtype, {count});
  ops::convert(HostView(values, {count}), narrow_view, stream);
  ops::convert(narrow_view, HostView(back, {count}), stream);
  CHECK(narrow == halves(values, dtype));
  CHECK(back == held(values, dtype));
}

}  // namespace
}  // namespace dstrain
