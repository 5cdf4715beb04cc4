#include "runtime/tensor/shape.h"

#include <tuple>

#include "runtime/tensor/dtype.h"
#include "tests/support/catch.h"

namespace dstrain {

TEST_CASE("Shape: extents numel and text", "[tensor][shape]") {
  const auto [shape, numel, text] =
      GENERATE(table<Shape, std::int64_t, const char*>({{Shape{}, 1, "()"},
                                                        {Shape{7}, 7, "(7)"},
                                                        {Shape{2, 3}, 6, "(2, 3)"},
                                                        {Shape{2, 0, 5}, 0, "(2, 0, 5)"},
                                                        {Shape{2, 3, 4, 5}, 120, "(2, 3, 4, 5)"}}));
  CHECK(shape.numel() == numel);
  CHECK(to_string(shape) == text);
  CHECK(Shape(shape.extents()) == shape);
}

TEST_CASE("Shape: equal only with the same rank and extents", "[tensor][shape]") {
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK(Shape{2, 3} != Shape{3, 2});
  CHECK(Shape{2, 3} != Shape{2, 3, 1});
  CHECK(Shape{} != Shape{1});
}

TEST_CASE("Shape: an axis beyond the four is refused", "[tensor][shape]") {
  CHECK_THROWS((Shape{1, 2, 3, 4, 5}));
  CHECK_THROWS((Shape{1, 2}[4]));
}

TEST_CASE("DType: sizes and C++ types agree", "[tensor][dtype]") {
  STATIC_REQUIRE(size_of(dtype_of<float>) == sizeof(float));
  STATIC_REQUIRE(size_of(dtype_of<std::int32_t>) == sizeof(std::int32_t));
  STATIC_REQUIRE(size_of(dtype_of<std::int64_t>) == sizeof(std::int64_t));
  STATIC_REQUIRE(size_of(dtype_of<std::uint16_t>) == sizeof(std::uint16_t));
  STATIC_REQUIRE(size_of(dtype_of<std::uint8_t>) == sizeof(std::uint8_t));
  STATIC_REQUIRE(size_of(DType::f16) == 2);
  STATIC_REQUIRE(size_of(DType::bf16) == 2);
}

}  // namespace dstrain
