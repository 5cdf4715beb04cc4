#include "runtime/tensor/tensor_view.h"

#include <vector>

#include <catch2/catch.hpp>

namespace dstrain {

TEST_CASE("TensorView: describes the memory it was given", "[tensor][view]") {
  std::vector<std::int32_t> tokens(6);
  const TensorView view(tokens.data(), DType::i32, {2, 3});
  CHECK(view.numel() == 6);
  CHECK(view.bytes() == 24);
  CHECK(view.row_stride() == 3);
  CHECK(view.dense());
  CHECK_FALSE(view.empty());
  CHECK(TensorView().empty());
  view.as<std::int32_t>()[5] = 9;
  CHECK(tokens[5] == 9);
}

TEST_CASE("TensorView: a scalar has one element", "[tensor][view]") {
  float value = 3;
  const TensorView view(&value, DType::f32, {});
  CHECK(view.numel() == 1);
  CHECK(view.dense());
  CHECK(view.as<float>()[0] == 3);
}

TEST_CASE("TensorView: another element type is a bug", "[tensor][view]") {
  std::vector<float> values(4);
  const TensorView view(values, {4});
  CHECK(view.as<const float>().size() == 4);
  CHECK_THROWS_WITH(view.as<std::int32_t>(), Catch::Contains("wrong type or strided"));
  const TensorView half(values.data(), DType::bf16, {4});
  CHECK_THROWS_WITH(half.as<std::uint16_t>(), Catch::Contains("wrong type or strided"));
}

TEST_CASE("TensorView: a strided one gives no span and no other shape", "[tensor][view]") {
  std::vector<float> values(12);
  const TensorView columns(values.data(), DType::f32, {3, 2}, {}, 4);
  CHECK_FALSE(columns.dense());
  CHECK(columns.numel() == 6);
  CHECK_THROWS_WITH(columns.as<float>(), Catch::Contains("wrong type or strided"));
  CHECK_THROWS_WITH(columns.reshaped({6}), Catch::Contains("(3, 2) as (6)"));
}

TEST_CASE("TensorView: reshaping keeps the elements", "[tensor][view]") {
  std::vector<float> values(12);
  const TensorView view(values, {3, 4});
  const TensorView other = view.reshaped({2, 2, 3});
  CHECK(other.data() == view.data());
  CHECK(other.row_stride() == 3);
  CHECK(other.shape() == Shape{2, 2, 3});
  CHECK_THROWS_WITH(view.reshaped({5, 2}), Catch::Contains("(3, 4) as (5, 2)"));
}

TEST_CASE("TensorView: a part starts where it was asked to", "[tensor][view]") {
  std::vector<std::uint16_t> values(12);
  const TensorView view(values.data(), DType::bf16, {3, 4});
  const TensorView part = view.part(5, {7});
  CHECK(part.data() == view.data() + 10);
  CHECK(part.dtype() == DType::bf16);
  CHECK(part.shape() == Shape{7});
  CHECK_THROWS_WITH(view.part(6, {7}), Catch::Contains("(7) from 6 in (3, 4)"));
}

TEST_CASE("TensorView: a shape larger than its values is a bug", "[tensor][view]") {
  std::vector<float> values(5);
  CHECK_NOTHROW(TensorView(values, {5}));
  CHECK_THROWS_WITH(TensorView(values, {2, 3}), Catch::Contains("(2, 3) in 5 elements"));
}

}  // namespace dstrain
