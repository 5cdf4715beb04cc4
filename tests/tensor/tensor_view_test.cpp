#include "runtime/tensor/tensor_view.h"

#include <type_traits>
#include <vector>

#include "runtime/tensor/host_access.h"
#include "tests/support/catch.h"

namespace dstrain {

TEST_CASE("HostView: describes the memory it was given", "[tensor][view]") {
  std::vector<std::int32_t> tokens(6);
  const HostView view(tokens.data(), DType::i32, {2, 3});
  CHECK(view.numel() == 6);
  CHECK(view.bytes() == 24);
  CHECK(view.row_stride() == 3);
  CHECK(view.dense());
  CHECK_FALSE(view.empty());
  CHECK(HostView().empty());
  view.as<std::int32_t>()[5] = 9;
  CHECK(tokens[5] == 9);
}

TEST_CASE("HostView: a scalar has one element", "[tensor][view]") {
  float value = 3;
  const HostView view(&value, DType::f32, {});
  CHECK(view.numel() == 1);
  CHECK(view.dense());
  CHECK(view.as<float>()[0] == 3);
}

TEST_CASE("HostView: another element type is a bug", "[tensor][view]") {
  std::vector<float> values(4);
  const HostView view(values, {4});
  CHECK(view.as<const float>().size() == 4);
  CHECK_THROWS_WITH(view.as<std::int32_t>(),
                    Catch::Matchers::ContainsSubstring("wrong type or strided"));
  const HostView half(values.data(), DType::bf16, {4});
  CHECK_THROWS_WITH(half.as<std::uint16_t>(),
                    Catch::Matchers::ContainsSubstring("wrong type or strided"));
}

TEST_CASE("HostView: a strided one gives no span and no other shape", "[tensor][view]") {
  std::vector<float> values(12);
  const HostView columns = HostView(values, {3, 4}).columns(1, 2);
  CHECK_FALSE(columns.dense());
  CHECK(columns.numel() == 6);
  CHECK_THROWS_WITH(columns.as<float>(),
                    Catch::Matchers::ContainsSubstring("wrong type or strided"));
  CHECK_THROWS_WITH(columns.reshaped({6}),
                    Catch::Matchers::ContainsSubstring("(6) from 0 in (3, 2)"));
  CHECK(columns.row_stride() == 4);
  CHECK(columns.data() == HostView(values, {3, 4}).data() + 4);
}

TEST_CASE("HostView: reshaping keeps the elements", "[tensor][view]") {
  std::vector<float> values(12);
  const HostView view(values, {3, 4});
  const HostView other = view.reshaped({2, 2, 3});
  CHECK(other.data() == view.data());
  CHECK(other.row_stride() == 3);
  CHECK(other.shape() == Shape{2, 2, 3});
  CHECK_THROWS_WITH(view.reshaped({5, 2}),
                    Catch::Matchers::ContainsSubstring("(5, 2) from 0 in (3, 4)"));
}

TEST_CASE("HostView: a part starts where it was asked to", "[tensor][view]") {
  std::vector<std::uint16_t> values(12);
  const HostView view(values.data(), DType::bf16, {3, 4});
  const HostView part = view.part(5, {7});
  CHECK(part.data() == view.data() + 10);
  CHECK(part.dtype() == DType::bf16);
  CHECK(part.shape() == Shape{7});
  CHECK_THROWS_WITH(view.part(6, {7}), Catch::Matchers::ContainsSubstring("(7) from 6 in (3, 4)"));
}

TEST_CASE("HostView: rows and columns of a matrix", "[tensor][view]") {
  std::vector<float> values(12);
  const HostView view(values, {3, 4});
  CHECK(view.rows(1, 2).data() == view.data() + 16);
  CHECK(view.rows(1, 2).shape() == Shape{2, 4});
  CHECK_THROWS_WITH(view.rows(2, 2), Catch::Matchers::ContainsSubstring("(2, 4) from 8 in (3, 4)"));
  CHECK_THROWS_WITH(view.columns(3, 2),
                    Catch::Matchers::ContainsSubstring("2 columns from 3 in (3, 4)"));
  CHECK_THROWS_WITH(view.reshaped({12}).rows(0, 1),
                    Catch::Matchers::ContainsSubstring("rows of (12)"));
}

TEST_CASE("HostView: tensors are cut from a block of bytes", "[tensor][view]") {
  std::vector<std::byte> bytes(24);
  const HostView block(bytes.data(), DType::u8, {24});
  const HostView cut = block.cut(8, DType::f32, {2, 2});
  CHECK(cut.data() == block.data() + 8);
  CHECK(cut.shape() == Shape{2, 2});
  CHECK_THROWS_WITH(block.cut(12, DType::f32, {4}),
                    Catch::Matchers::ContainsSubstring("(4) from 12 in (24)"));
  CHECK_THROWS_WITH(cut.cut(0, DType::f32, {1}),
                    Catch::Matchers::ContainsSubstring("(1) from 0 in (2, 2)"));
}

TEST_CASE("TensorView: one of host memory is one of the CPU", "[tensor][view]") {
  std::vector<float> values(12);
  const HostView host(values, {3, 4});
  const TensorView view = host.part(2, {5});
  CHECK(host_access(view).data() == host.data() + 8);
  CHECK(view.begins_with(host.part(2, {1})));
  CHECK_FALSE(view.begins_with(host));
  STATIC_REQUIRE(std::is_convertible_v<HostView, TensorView>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<HostView, TensorView>);
}

TEST_CASE("TensorView: the host cannot access memory of another device", "[tensor][view]") {
  float value = 0;
  const TensorView view(&value, DType::f32, {1}, {DeviceKind::cuda, 0});
  CHECK_THROWS_WITH(host_access(view.part(0, {1})),
                    Catch::Matchers::ContainsSubstring("cannot reach"));
}

TEST_CASE("TensorView: one without memory describes its parts", "[tensor][view]") {
  const TensorView view(DType::bf16, {3, 4});
  CHECK(view.empty());
  CHECK(view.rows(1, 2).empty());
  CHECK(view.columns(1, 2).empty());
  CHECK(view.bytes() == 24);
}

TEST_CASE("HostView: a shape larger than its values is a bug", "[tensor][view]") {
  std::vector<float> values(5);
  CHECK_NOTHROW(HostView(values, {5}));
  CHECK_THROWS_WITH(HostView(values, {2, 3}),
                    Catch::Matchers::ContainsSubstring("(2, 3) in 5 elements"));
}

}  // namespace dstrain
