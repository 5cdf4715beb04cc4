#include <limits>

#include <fmt/format.h>

#include "runtime/safetensors/header.h"
#include "runtime/safetensors/writer.h"
#include "tests/safetensors/files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using safetensors::TensorInfo;

std::vector<float> read_all(const safetensors::File& file, std::size_t index) {
  const auto& entry = file.entries().at(index);
  std::vector<float> values(static_cast<std::size_t>(entry.numel));
  file.read(entry, 0, values);
  return values;
}

}  // namespace

TEST_CASE("Safetensors: what is written in pieces is read back", "[safetensors]") {
  const TempDir directory;
  const auto path = directory.path() / "m.safetensors";
  const std::vector<TensorInfo> tensors{
      {"x.a.weight", DType::f32, {4}}, {"x.b", DType::f32, {2, 3}}, {"x.none", DType::f32, {0}}};
  std::vector<float> a{1, 2, 3, 4};
  std::vector<float> b{5, 6, 7, 8, 9, -0.0F};
  {
    safetensors::Writer writer(path, tensors);
    writer.write("x.b", flat(b).part(0, {2}));
    writer.write("x.a.weight", flat(a));
    writer.write("x.b", flat(b).part(2, {4}));
    CHECK_FALSE(std::filesystem::exists(path));
    writer.finish();
  }
  const auto file = open_safetensors(path);
  REQUIRE(file.entries().size() == 3);
  CHECK(file.entries()[0].name == "x.a.weight");
  CHECK(file.entries()[0].shape == std::vector<std::int64_t>{4});
  CHECK(file.entries()[1].name == "x.b");
  CHECK(file.entries()[1].shape == std::vector<std::int64_t>{2, 3});
  CHECK(file.entries()[2].numel == 0);
  CHECK(read_all(file, 0) == a);
  CHECK(read_all(file, 1) == b);
  std::vector<float> middle(3);
  file.read(file.entries()[1], 2, middle);
  CHECK(middle == std::vector<float>{7, 8, 9});
  std::uint64_t header_bytes = 0;
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(&header_bytes), 8);
  CHECK(header_bytes % 8 == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("Safetensors: the work of a header grows with its tensors and no faster",
          "[safetensors]") {
  constexpr int count = 300'000;  // in square, minutes
  std::vector<TensorInfo> tensors;
  for (int i = 0; i < count; ++i) {
    tensors.push_back({fmt::format("model.layers.0.mlp.experts.{}.weight", i), DType::f32, {1}});
  }
  const safetensors::Layout layout = safetensors::lay_out(tensors);
  CHECK(layout.offsets.size() == tensors.size());
  CHECK(layout.bytes == layout.head.size() + count * sizeof(float));
}

TEST_CASE("Safetensors: an unfinished file leaves the old one", "[safetensors]") {
  const TempDir directory;
  const auto path = directory.path() / "m.safetensors";
  write_file(path, "old");
  const std::vector<TensorInfo> tensors{{"a", DType::f32, {2}}};
  {
    safetensors::Writer writer(path, tensors);
    std::vector<float> values{1, 2};
    std::vector<BFloat16> halves(1);
    writer.write("a", flat(values).part(0, {1}));
    CHECK_THAT(error_of([&] { writer.finish(); }),
               Catch::Matchers::ContainsSubstring("a lacks 4 bytes"));
    CHECK_THAT(error_of([&] { writer.write("a", flat(values)); }),
               Catch::Matchers::ContainsSubstring("a gets more than its shape holds"));
    CHECK_THAT(error_of([&] { writer.write("a", flat(halves)); }),
               Catch::Matchers::ContainsSubstring("a of another dtype"));
    CHECK_THAT(error_of([&] { writer.write("b", flat(values)); }),
               Catch::Matchers::ContainsSubstring("no tensor named b"));
  }
  CHECK(std::filesystem::file_size(path) == 3);
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("Safetensors: a directory that cannot be written is named", "[safetensors]") {
  const TempDir directory;
  const std::vector<TensorInfo> tensors{{"a", DType::f32, {2}}};
  const auto path = directory.path() / "missing" / "m.safetensors";
  CHECK_THAT(error_of([&] { safetensors::Writer(path, tensors); }),
             Catch::Matchers::ContainsSubstring(path.string()));
}

TEST_CASE("Safetensors: half formats become the floats they stand for", "[safetensors]") {
  const TempDir directory;
  const auto path = directory.path() / "m.safetensors";
  const std::vector<std::uint16_t> f16{0x0000, 0x8000, 0x3C00, 0xC000, 0x7BFF,
                                       0x0400, 0x0001, 0x83FF, 0x7C00, 0xFC00};
  const std::vector<std::uint16_t> bf16{0x3F80, 0xBF80, 0x7F7F, 0x0001};
  write_file(path,
             safetensors_bytes(R"({"h":{"dtype":"F16","shape":[10],"data_offsets":[0,20]},)"
                               R"("s":{"dtype":"BF16","shape":[2,2],"data_offsets":[20,28]}}  )",
                               raw(f16) + raw(bf16)));
  const auto file = open_safetensors(path);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(read_all(file, 0) == std::vector<float>{0, -0.0F, 1, -2, 65504, 0x1p-14F, 0x1p-24F,
                                                -1023 * 0x1p-24F, infinity, -infinity});
  CHECK(read_all(file, 1) == std::vector<float>{1, -1, 0x1.FEp127F, 0x1p-133F});
}

TEST_CASE("Safetensors: long conversions cross pieces", "[safetensors]") {
  const TempDir directory;
  const auto path = directory.path() / "m.safetensors";
  constexpr std::size_t count = 10'000;
  std::vector<std::uint16_t> halves(count);
  for (std::size_t i = 0; i < count; ++i) halves[i] = static_cast<std::uint16_t>(i);
  write_file(path,
             safetensors_bytes(R"({"h":{"dtype":"BF16","shape":[10000],"data_offsets":[0,20000]}})",
                               raw(halves)));
  const auto file = open_safetensors(path);
  std::vector<float> values(count - 1);
  file.read(file.entries()[0], 1, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != to_float(BFloat16{halves[i + 1]})) FAIL("element " << i);
  }
}

TEST_CASE("Safetensors: F64 is rounded", "[safetensors]") {
  const TempDir directory;
  const auto path = directory.path() / "m.safetensors";
  std::vector<double> doubles(5000);
  for (std::size_t i = 0; i < doubles.size(); ++i) doubles[i] = 1.0 / static_cast<double>(i + 1);
  write_file(path,
             safetensors_bytes(R"({"d":{"dtype":"F64","shape":[5000],"data_offsets":[0,40000]}})",
                               raw(doubles)));
  const auto file = open_safetensors(path);
  std::vector<float> values(doubles.size() - 1);
  file.read(file.entries()[0], 1, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] != static_cast<float>(doubles[i + 1])) FAIL("element " << i);
  }
}

TEST_CASE("Safetensors: a dtype that is not read is named", "[safetensors]") {
  const TempDir directory;
  const auto path = directory.path() / "m.safetensors";
  write_file(path, safetensors_bytes(R"({"i":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})",
                                     "12345678"));
  const auto file = open_safetensors(path);
  std::vector<float> value(1);
  CHECK(error_of([&] { file.read(file.entries()[0], 0, value); }) ==
        "m.safetensors: tensor 'i' is I64; only F64, F32, F16 and BF16 are read");
}

TEST_CASE("Safetensors: a file may end with its header", "[safetensors]") {
  const TempDir directory;
  const auto path = directory.path() / "m.safetensors";
  write_file(path, safetensors_bytes("{}", ""));
  CHECK(open_safetensors(path).entries().empty());
  write_file(path,
             safetensors_bytes(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})", ""));
  CHECK(open_safetensors(path).entries().at(0).numel == 0);
}

TEST_CASE("Safetensors: a file that shrinks is an error", "[safetensors]") {
  const TempDir directory;
  const auto path = directory.path() / "m.safetensors";
  write_file(path, safetensors_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                                     "12345678"));
  const auto file = open_safetensors(path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 4);
  std::vector<float> values(2);
  CHECK_THAT(error_of([&] { file.read(file.entries()[0], 0, values); }),
             Catch::Matchers::ContainsSubstring("became shorter"));
}

}  // namespace dstrain::test
