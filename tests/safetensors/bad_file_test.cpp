
#include "tests/safetensors/files.h"
#include "tests/support/catch.h"
#include "tests/support/largest_allocation.h"
#include "tests/support/temp_dir.h"

namespace dstrain::test {
namespace {

struct BadFile {
  const char* what;
  std::string bytes;
  std::string message;  ///< the start of it, after the file's name
};

const std::string one = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
const std::string eight(8, '\1');

std::string with_size(std::uint64_t header_bytes, const std::string& rest) {
  return raw(std::vector<std::uint64_t>{header_bytes}) + rest;
}

std::string entry(const std::string& fields) {
  return R"({"a":{)" + fields + "}}";
}

std::string thirty_three_ones() {
  std::string text = "1";
  for (int i = 0; i < 32; ++i) text += ",1";
  return text;
}

std::vector<BadFile> bad_frames() {
  return {
      {"too short", "1234567", "7 bytes are too few"},
      {"header over the limit", with_size(100'000'001, "{}"), "the header claims 100000001 bytes"},
      {"header of 2^64 - 1", with_size(~std::uint64_t{0}, "{}"), "the header claims 184467440"},
      {"header that wraps around", with_size(~std::uint64_t{7}, "{}"), "the header claims 18446"},
      {"header longer than the file", with_size(99'999'999, "{}"),
       "the header claims 99999999 bytes, but the file has 10"},
      {"header a byte longer than the file", with_size(3, "{}"),
       "the header claims 3 bytes, but the file has 10"},
      {"no brace", safetensors_bytes(" {}", ""), "the header does not start with '{'"},
      {"empty header", safetensors_bytes("", ""), "the header does not start with '{'"},
      {"pickle", "\x80\x02}q\1(X\5\0\0\0dummy", "the header claims"},
      {"data missing", safetensors_bytes("{" + one + "}", "1234567"),
       "the tensors take 8 bytes of data, but the file holds 7"},
      {"data left over", safetensors_bytes("{" + one + "}", "123456789"),
       "the tensors take 8 bytes of data, but the file holds 9"},
  };
}

std::vector<BadFile> bad_json() {
  const auto file = [](const std::string& header) {
    return safetensors_bytes(header, eight);
  };
  const std::string prefix = "bad safetensors header: ";
  return {
      {"broken JSON", file("{" + one), prefix + "no valid JSON at byte"},
      {"text after the end", file("{" + one + "} x"), prefix + "no valid JSON at byte"},
      {"zero padding", file("{" + one + "}" + std::string(3, '\0')), prefix + "no valid JSON"},
      {"bad UTF-8", file("{\"\xff\":1}"), prefix + "no valid JSON"},
      {"name twice", file("{" + one + "," + one + "}"), prefix + "the name 'a' appears twice"},
      {"a name that moves the cursor", file(R"({"\u001b[2J":1})"),
       prefix + "a number is out of place in '\\x1b[2J'"},
      {"a name of a megabyte", file("{\"" + std::string(1 << 20, 'n') + "\":1}"),
       prefix + "a number is out of place in '" + std::string(200, 'n') + "... (1048576 bytes)'"},
      {"field twice", file(entry(R"("dtype":"F32","dtype":"F32")")),
       prefix + "the key 'dtype' appears twice in 'a'"},
      {"no dtype", file(entry(R"("shape":[2],"data_offsets":[0,8])")), prefix + "'a' has no dtype"},
      {"no shape", file(entry(R"("dtype":"F32","data_offsets":[0,8])")),
       prefix + "'a' has no shape"},
      {"no offsets", file(entry(R"("dtype":"F32","shape":[2])")),
       prefix + "'a' has no data_offsets"},
      {"unknown field", file(entry(R"("dtype":"F32","strides":[1])")),
       prefix + "an array is out of place in 'a'"},
      {"deep", file(entry(R"("shape":[[2]])")), prefix + "an array is out of place in 'a'"},
      {"very deep", file("{\"a\":" + std::string(100'000, '[')),
       prefix + "an array is out of place"},
      {"tensor is a number", file(R"({"a":1})"), prefix + "a number is out of place in 'a'"},
      {"metadata with a number", file(R"({"__metadata__":{"a":1}})"),
       prefix + "a number is out of place in '__metadata__'"},
      {"negative extent", file(entry(R"("shape":[-2])")),
       prefix + "a negative number is out of place"},
      {"fraction", file(entry(R"("shape":[2.5])")), prefix + "the number 2.5 is out of place"},
      {"extent of 2^64", file(entry(R"("shape":[18446744073709551616])")),
       prefix + "the number 18446744073709551616 is out of place"},
      {"extent of 2^63", file(entry(R"("shape":[9223372036854775808])")),
       prefix + "'a' has a size beyond 2^63"},
      {"three offsets", file(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])")),
       prefix + "'a' needs two data_offsets"},
      {"33 dimensions", file(entry("\"shape\":[" + thirty_three_ones() + "]")),
       prefix + "'a' has too many dimensions"},
  };
}

std::vector<BadFile> bad_tensors() {
  const auto file = [](const std::string& fields) {
    return safetensors_bytes(entry(fields), eight);
  };
  const std::string b = R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":)";
  const auto two = [&](const std::string& offsets, const std::string& data) {
    return safetensors_bytes("{" + one + b + offsets + "}}", data);
  };
  return {
      {"unknown dtype", file(R"("dtype":"F31","shape":[2],"data_offsets":[0,8])"),
       "tensor 'a' has an unknown dtype 'F31'"},
      {"shape too large", file(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"),
       "tensor 'a' has the data_offsets [0, 8], but F32 of shape (3) takes 12 bytes"},
      {"offsets reversed", file(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"),
       "tensor 'a' has the data_offsets [8, 0]"},
      {"numel overflows",
       file(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])"),
       "tensor 'a' has a shape (4294967296, 4294967296) beyond 2^63"},
      {"bytes overflow",
       file(R"("dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,8])"),
       "tensor 'a' has a shape (4611686018427387904) beyond 2^63"},
      {"half a byte", file(R"("dtype":"F4","shape":[15],"data_offsets":[0,8])"),
       "tensor 'a' has the data_offsets [0, 8]"},
      {"claims a terabyte",
       file(R"("dtype":"F32","shape":[274877906944],"data_offsets":[0,1099511627776])"),
       "the tensors take 1099511627776 bytes of data, but the file holds 8"},
      {"hole", two("[12,16]", std::string(16, '\1')),
       "tensor 'b' starts at byte 12 of the data, which leaves a hole after byte 8"},
      {"hole at the start", file(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"),
       "tensor 'a' starts at byte 4 of the data, which leaves a hole after byte 0"},
      {"overlap", two("[4,8]", eight),
       "tensor 'b' starts at byte 4 of the data, inside the tensor that ends at 8"},
  };
}

void check_refused(const BadFile& bad) {
  const TempDir directory;
  const auto path = directory.path() / "m.safetensors";
  write_file(path, bad.bytes);
  CAPTURE(bad.what);
  CHECK_THAT(error_of([&] { open_safetensors(path); }),
             Catch::Matchers::StartsWith("m.safetensors: " + bad.message));
}

}  // namespace

TEST_CASE("Safetensors: a file that breaks the frame is refused", "[safetensors]") {
  for (const BadFile& bad : bad_frames()) check_refused(bad);
}

TEST_CASE("Safetensors: a header that breaks the grammar is refused", "[safetensors]") {
  for (const BadFile& bad : bad_json()) check_refused(bad);
}

TEST_CASE("Safetensors: tensors that do not fit the data are refused", "[safetensors]") {
  for (const BadFile& bad : bad_tensors()) check_refused(bad);
}

TEST_CASE("Safetensors: nothing is allocated for what a file only claims", "[safetensors]") {
  const TempDir directory;
  const auto path = directory.path() / "m.safetensors";
  const std::string good = safetensors_bytes("{" + one + "}", eight);
  const auto claiming = [&](std::uint64_t header_bytes) {
    return raw(std::vector{header_bytes}) + good.substr(8);
  };
  for (const std::string& bytes :
       {claiming(99'000'000), claiming(std::uint64_t{1} << 63), claiming(~std::uint64_t{0}),
        claiming(good.size() - 7),
        safetensors_bytes(
            entry(R"("dtype":"F32","shape":[274877906944],"data_offsets":[0,1099511627776])"),
            eight)}) {
    write_file(path, bytes);
    take_largest_allocation();
    CHECK(error_of([&] { open_safetensors(path); }) != "");
    CHECK(take_largest_allocation() < 4096);
  }
}

TEST_CASE("Safetensors: no prefix of a good file is accepted", "[safetensors]") {
  const TempDir directory;
  const auto path = directory.path() / "m.safetensors";
  const std::string good = safetensors_bytes("{" + one + "}", eight);
  for (std::size_t size = 0; size < good.size(); ++size) {
    write_file(path, good.substr(0, size));
    CAPTURE(size);
    CHECK(error_of([&] { open_safetensors(path); }) != "");
  }
  write_file(path, good);
  CHECK(open_safetensors(path).entries().size() == 1);
}

TEST_CASE("Safetensors: a changed byte never breaks the reader", "[safetensors]") {
  const TempDir directory;
  const auto path = directory.path() / "m.safetensors";
  const std::string good = safetensors_bytes("{" + one + "}", eight);
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const char byte : {'\0', '\x7f', '\xff', '{', '"', '9'}) {
      std::string bytes = good;
      bytes[i] = byte;
      write_file(path, bytes);
      try {
        const auto file = open_safetensors(path);
        for (const auto& tensor : file.entries()) CHECK(tensor.end <= eight.size());
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::input);
      }
    }
  }
}

}  // namespace dstrain::test
