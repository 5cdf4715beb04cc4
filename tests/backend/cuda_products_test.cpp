// How a GPU multiplies matrices: in TF32 where it is told to.
#include <algorithm>
#include <bit>
#include <cmath>

#include <catch2/catch.hpp>

#include "runtime/device/cpu_stream.h"
#include "runtime/ops/convert.h"
#include "runtime/ops/matmul.h"
#include "runtime/tensor/buffer.h"
#include "tests/support/random_values.h"
#include "tests/support/test_gpu.h"
#include "tests/support/typed_values.h"

using namespace dstrain;
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

}  // namespace

TEST_CASE("CUDA products: TF32 rounds what is multiplied and nothing else", "[cuda]") {
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
