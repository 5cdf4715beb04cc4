// How a GPU multiplies matrices: in TF32 where it is told to, by the algorithms that it is told.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "runtime/device/cpu_stream.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/matmul.h"
#include "runtime/tensor/buffer.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/random_values.h"
#include "tests/support/skip.h"
#include "tests/support/test_gpu.h"
#include "tests/support/typed_values.h"

using namespace dstrain;
using Catch::Matchers::ContainsSubstring;
using Floats = std::vector<float>;

namespace {

constexpr std::int64_t rows = 37;
constexpr std::int64_t columns = 29;
constexpr std::int64_t inner = 203;

struct Factors {
  Floats a = test::random_values(rows * inner, 1);
  Floats b = test::random_values(inner * columns, 2);
  DType dtype = DType::f32;
};

/// a b, in f32, as `stream` multiplies them.
Floats multiply(const Factors& factors, MemoryResource& memory, StreamView stream) {
  const auto put = [&](const Floats& values, Shape shape) {
    test::TypedValues typed(values, factors.dtype);
    Buffer buffer(shape.numel() * size_of(factors.dtype), memory, stream);
    ops::convert(typed.view(shape), buffer.block().cut(0, factors.dtype, shape), stream);
    stream.synchronize();
    return buffer;
  };
  const Buffer a = put(factors.a, {rows, inner});
  const Buffer b = put(factors.b, {inner, columns});
  const Buffer out(rows * columns * 4, memory, stream);
  ops::MatmulArgs product{.a = a.block().cut(0, factors.dtype, {rows, inner}),
                          .b = b.block().cut(0, factors.dtype, {inner, columns}),
                          .out = out.block().cut(0, DType::f32, {rows, columns})};
  const Buffer workspace(ops::matmul_workspace(product, stream.device().kind) + 64, memory, stream);
  product.workspace = workspace.block();
  ops::matmul(product, stream);
  Floats values(static_cast<std::size_t>(rows * columns));
  ops::convert(product.out, HostView(values, {rows, columns}), stream);
  stream.synchronize();
  return values;
}

Floats multiply_on_cpu(const Factors& factors) {
  HostMemory host;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  return multiply(factors, host, stream);
}

/// To 10 bits of mantissa.
Floats rounded_to_tf32(Floats values) {
  for (float& value : values) {
    value = std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + 0x1000) & 0xFFFFE000);
  }
  return values;
}

/// ||actual - expected|| / ||expected||
double error_of(const Floats& actual, const Floats& expected) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(static_cast<double>(actual[i]) - static_cast<double>(expected[i]), 2);
    norm += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(error / norm);
}

/// Which of the algorithms that the stand-in has is the fastest; by a GPU it is not heard.
void set_fastest(const char* algorithm) {
  ::setenv("DSTRAIN_STAND_IN_FASTEST", algorithm, 1);
}

constexpr Bytes any_room = Bytes{1} << 40;

/// A stream of a GPU that has multiplied once.
struct Multiplied {
  Multiplied() : stream(gpu->make_stream(Backend::StreamUse::computing)), first(again()) {}
  Floats again() const { return multiply({}, gpu->memory(), *stream); }
  std::string tuned(Bytes room = any_room) const { return gpu->tune_products(*stream, room); }
  std::string use(const std::string& algorithms) const {
    return gpu->use_algorithms(algorithms, *stream);
  }
  std::unique_ptr<Backend> gpu = test::open_test_gpu();
  std::unique_ptr<Stream> stream;
  Floats first;
};

std::string replaced(std::string text, const std::string& old, const std::string& by) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), by);
}

}  // namespace

TEST_CASE("CUDA products: TF32 rounds only the factors", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const auto exact = gpu->make_stream(Backend::StreamUse::computing);
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  gpu->use_tf32(*stream);
  const Factors factors;
  const Floats expected = multiply_on_cpu(factors);
  const Floats tf32 = multiply(factors, gpu->memory(), *stream);
  CHECK(error_of(multiply(factors, gpu->memory(), *exact), expected) < 1e-6);
  CHECK(error_of(tf32, expected) > 1e-5);
  const Floats rounded =
      multiply_on_cpu({.a = rounded_to_tf32(factors.a), .b = rounded_to_tf32(factors.b)});
  // A GPU may drop the bits that another rounds.
  CHECK(error_of(tf32, rounded) < (test::stands_in_for_gpu() ? 1e-6 : 1e-3));
}

TEST_CASE("CUDA products: TF32 changes no product of 16 bits", "[cuda]") {
  const auto gpu = test::open_test_gpu();
  const auto exact = gpu->make_stream(Backend::StreamUse::computing);
  const auto stream = gpu->make_stream(Backend::StreamUse::computing);
  gpu->use_tf32(*stream);
  const Factors factors{.dtype = GENERATE(DType::bf16, DType::f16)};
  CHECK((multiply(factors, gpu->memory(), *stream) == multiply(factors, gpu->memory(), *exact)));
}

TEST_CASE("CUDA products: tuned products are correct and repeatable", "[cuda]") {
  const Multiplied one;
  const std::string algorithms = one.tuned();
  CHECK((one.again() == one.first));  // nothing is used before it is told to be
  REQUIRE(one.use(algorithms) == "");
  const auto [all, chosen] = one.gpu->count_products(*one.stream);
  CHECK(all == 1);
  CHECK(chosen == 1);
  const Floats tuned = one.again();
  CHECK(error_of(tuned, multiply_on_cpu({})) < 1e-6);
  CHECK((one.again() == tuned));
  // Another stream learns of it before it multiplies.
  const auto other = one.gpu->make_stream(Backend::StreamUse::computing);
  REQUIRE(one.gpu->use_algorithms(algorithms, *other) == "");
  CHECK((multiply({}, one.gpu->memory(), *other) == tuned));
}

TEST_CASE("CUDA products: without memory to try it a product keeps its algorithm", "[cuda]") {
  set_fastest("1");
  const Multiplied one;
  REQUIRE(one.use(one.tuned(Bytes{32} << 20)) == "");  // the workspace alone
  CHECK(one.gpu->count_products(*one.stream).chosen == 0);
  CHECK((one.again() == one.first));
}

TEST_CASE("CUDA products: algorithms of another GPU or library are refused", "[cuda]") {
  set_fastest("1");
  const Multiplied one;
  const std::string algorithms = one.tuned();
  CHECK_THAT(one.use(replaced(algorithms, "cuBLASLt 1", "cuBLASLt 99")),
             ContainsSubstring("they are of cuBLASLt 99") &&
                 ContainsSubstring(", and this is cuBLASLt 1"));
  CHECK_THAT(one.use(replaced(algorithms, R"("gpu":")", R"("gpu":"an older )")),
             ContainsSubstring("they are of an older "));
  CHECK_THAT(one.use(replaced(algorithms, R"("shape")", R"("sizes")")),
             ContainsSubstring("'shape'"));
  CHECK_THAT(one.use(replaced(algorithms, R"("algorithm":")", R"("algorithm":"x)")),
             ContainsSubstring("is no algorithm"));
  CHECK(one.gpu->count_products(*one.stream).chosen == 0);
  CHECK((one.again() == one.first));
}

// Only the stand-in, whose algorithms are known:

TEST_CASE("CUDA products: the fastest algorithm is used", "[cuda]") {
  if (!test::stands_in_for_gpu()) test::skip("which one is the fastest is the GPU's to say");
  std::vector<Floats> results;
  for (const char* fastest : {"0", "1", "2", "3"}) {
    set_fastest(fastest);
    const Multiplied one;
    REQUIRE(one.use(one.tuned()) == "");
    results.push_back(one.again());
    if (results.size() == 1) CHECK((results[0] == one.first));
  }
  CHECK((results[1] != results[0]));
  CHECK((results[2] != results[0]));
  CHECK((results[2] != results[1]));
  // The last one does not reduce in a fixed order: another is taken.
  CHECK(std::ranges::find(results, results[3]) != std::prev(results.end()));
}

TEST_CASE("CUDA products: an algorithm that cuBLASLt refuses is not used", "[cuda]") {
  if (!test::stands_in_for_gpu()) test::skip("a GPU's cuBLASLt may take what is wrong for another");
  const Multiplied one;
  const std::string wrong = replaced(one.tuned(), R"("algorithm":"0000)", R"("algorithm":"ffff)");
  CHECK(one.use(wrong) == "");
  CHECK(one.gpu->count_products(*one.stream).chosen == 0);
  CHECK((one.again() == one.first));
}
