// The checker finds what it is there for, and the writer's files pass it.

#include "runtime/safetensors/writer.h"
#include "tests/safetensors/files.h"
#include "tests/support/catch.h"
#include "tests/support/strict_safetensors.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

using Faults = std::vector<std::string>;

Faults faults_of(const std::string& bytes) {
  const TempDir directory;
  write_file(directory.path() / "m", bytes);
  return safetensors_faults(directory.path() / "m");
}

/// The faults of a file with this header, padded to a multiple of 8 bytes, and this much data.
Faults faults_of(std::string header, std::size_t data_bytes) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return faults_of(safetensors_bytes(header, std::string(data_bytes, '\1')));
}

const std::string start = R"({"__metadata__":{"format":"pt"})";
const std::string a = R"(,"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";

}  // namespace

TEST_CASE("Strict safetensors: a good file has no faults", "[safetensors]") {
  CHECK(faults_of(start + "}", 0).empty());
  CHECK(faults_of(start + a + "}", 8).empty());
  CHECK(faults_of(start + a + R"(,"b":{"dtype":"U8","shape":[],"data_offsets":[8,9]}})", 9) ==
        Faults{});
}

TEST_CASE("Strict safetensors: each broken rule is reported", "[safetensors]") {
  struct Row {
    std::string header;
    std::size_t data_bytes;
    std::string fault;
  };
  const std::string b = R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":)";
  const auto row = GENERATE_COPY(values<Row>({
      {fmt::format(" {}{}}}", start, a), 8, "the header does not begin with {"},
      {start + a + "}\n", 8, "after the header there is something else than spaces"},
      {start + a + a + "}", 8, "the key \"a\" appears twice"},
      {fmt::format("{{{}}}", a.substr(1)), 8, "no __metadata__"},
      {R"({"__metadata__":{"format":"pt","step":3}})", 0, "metadata step is no string"},
      {R"({"__metadata__":{"format":"tf"}})", 0, "metadata format is not \"pt\""},
      {start + R"(,"a":{"dtype":"F31","shape":[2],"data_offsets":[0,8]}})", 8, "a: unknown dtype"},
      {start + R"(,"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8,
       "a: a shape that is no array of sizes"},
      {start + R"(,"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8,
       "a: data_offsets that are no two numbers"},
      {start + R"(,"a":{"dtype":"F32","shape":[2]}})", 8, "a: no object of three members"},
      {start + R"(,"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8,
       "a: a size unlike its shape"},
      {start + a + b + "[12,16]}}", 16, "b: begins at 12, where 8 is next"},
      {start + a + b + "[4,8]}}", 8, "b: begins at 4, where 8 is next"},
      {start + b + "[8,12]}" + a + "}", 12, "b: begins at 8, where 0 is next"},
      {start + a + "}", 9, "tensors take 8 of 9 bytes of data"},
      {start + a + "}", 4, "tensors take 8 of 4 bytes of data"},
  }));
  CAPTURE(row.header);
  CHECK_THAT(faults_of(row.header, row.data_bytes), Catch::Matchers::VectorContains(row.fault));
}

TEST_CASE("Strict safetensors: a broken frame is told", "[safetensors]") {
  CHECK(faults_of("1234567") == Faults{"shorter than 8 bytes"});
  CHECK(faults_of(std::string(8, '\xff') + "{}") == Faults{"a header over 100 MB"});
  CHECK(faults_of(std::string("\x09\0\0\0\0\0\0\0{}", 10)) ==
        Faults{"a header longer than the file"});
  CHECK_THAT(
      faults_of(safetensors_bytes(start + "} ", "")),
      Catch::Matchers::VectorContains(std::string("the data does not begin at a multiple of 8")));
}

TEST_CASE("Strict safetensors: what the writer writes passes", "[safetensors]") {
  const TempDir directory;
  const auto path = directory.path() / "m.safetensors";
  const std::string odd_name = "a \"quoted\" n\u00e4me\n";
  const std::vector<safetensors::TensorInfo> tensors{{"scalar", DType::f16, {}},
                                                     {odd_name, DType::bf16, {3, 1}},
                                                     {"empty", DType::f32, {0, 7}},
                                                     {"last", DType::f32, {2}}};
  std::vector<std::uint16_t> halves{0x3C00, 0, 0};
  std::vector<BFloat16> shorts(3);
  std::vector<float> floats(2);
  safetensors::Writer writer(path, tensors);
  writer.write("scalar", {halves.data(), DType::f16, {1}});
  writer.write(odd_name, flat(shorts));
  writer.write("last", flat(floats));
  writer.finish();
  CHECK(safetensors_faults(path) == Faults{});
  CHECK(open_safetensors(path).entries().size() == 4);
}

}  // namespace dstrain::test
