// Products of few rows, as in decoding, over the weights of GPT-2 124M and of a Llama of 1.1
// billion parameters: GB/s of weights beside what a plain sum reads in the same rounds, and beside
// oneDNN. A JSON line per product: medians over the rounds. Each product goes through weights that
// do not fit the caches. The environment may name a number of rounds (DSTRAIN_ROUNDS).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "runtime/device/cpu_stream.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/ops/blocks16.h"
#include "runtime/ops/matmul.h"
#include "runtime/ops/simd.h"
#include "runtime/tensor/buffer.h"
#include "tests/ops/product_space.h"
#include "tests/support/catch.h"

namespace dstrain {
namespace {

constexpr Bytes pool_bytes = 384 * mebibyte;
constexpr Bytes bytes_per_round = 64 * mebibyte;

struct Layer {
  std::int64_t inputs;
  std::int64_t outputs;
  bool transposed;
};

constexpr Layer layers[]{{768, 2304, false}, {768, 768, false},  {768, 3072, false},
                         {3072, 768, false}, {768, 50257, true}, {2048, 2048, true},
                         {2048, 256, true},  {2048, 5632, true}, {5632, 2048, true},
                         {2048, 32000, true}};

DSTRAIN_SIMD_CLONES void sum_floats(const float* values, std::int64_t count, float* sum) {
  ops::Floats16 sums[8] = {};
  for (std::int64_t i = 0; i + 128 <= count; i += 128) {
    for (int j = 0; j < 8; ++j) {
      ops::Floats16 part;
      std::memcpy(&part, values + i + j * 16, sizeof part);
      sums[j] += part;
    }
  }
  for (int j = 1; j < 8; ++j) sums[0] += sums[j];
  std::memcpy(sum, sums, sizeof sums[0]);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

template <class Run>
double seconds_of(const Run& run) {
  const auto begin = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class Pool {
 public:
  explicit Pool(StreamView stream) : memory_(pool_bytes, resource_, stream) {
    std::uint32_t word = 1;
    for (std::uint16_t& bits : memory_.as<std::uint16_t>()) {
      word = word * 1664525U + 1013904223U;  // Knuth's: any numbers will do
      bits = static_cast<std::uint16_t>(0x3c00U | (word >> 16 & 0x83ffU));
    }
  }

  [[nodiscard]] double read() const {
    const std::span<float> values = memory_.as<float>();
    const std::int64_t parts = compute_threads();
    std::vector<float> sums(static_cast<std::size_t>(parts * 64));
    const std::int64_t count = std::ssize(values) / parts;
    const double seconds = seconds_of([&] {
      parallel_for(parts, [&](std::int64_t i) {
        sum_floats(values.data() + i * count, count, sums.data() + i * 64);
      });
    });
    return static_cast<double>(pool_bytes) / seconds;
  }

  /// Returns the next weight of a shape.
  HostView next(DType dtype, const Shape& shape) {
    const Bytes bytes = shape.numel() * size_of(dtype);
    if (at_ + bytes > pool_bytes) at_ = 0;
    const HostView view = memory_.block().cut(at_, dtype, shape);
    at_ += bytes / 4096 * 4096;
    return view;
  }

 private:
  HostMemory resource_;
  HostBuffer memory_;
  Bytes at_ = 0;
};

struct Product {
  Layer layer;
  DType dtype;
  std::int64_t rows;
  std::vector<double> ours;    ///< bytes per second
  std::vector<double> oneDNN;  ///< which adds to f32: other products of few rows are ours
  std::vector<double> read;
};

double rate_of(const Product& product, bool accumulate, Pool& pool, StreamView stream) {
  const auto [inputs, outputs, transposed] = product.layer;
  const Shape shape = transposed ? Shape{outputs, inputs} : Shape{inputs, outputs};
  std::vector<float> left(static_cast<std::size_t>(product.rows * inputs));
  std::vector<float> out(static_cast<std::size_t>(product.rows * outputs));
  ops::MatmulArgs args{.a = HostView(left.data(), product.dtype, {product.rows, inputs}),
                       .b = pool.next(product.dtype, shape),
                       .out = HostView(out, {product.rows, outputs}),
                       .b_transposed = transposed,
                       .accumulate = accumulate,
                       .workspace = {}};
  if (!accumulate) args.out = HostView(out.data(), product.dtype, {product.rows, outputs});
  test::ProductSpace space;
  args.workspace = space.of(args);
  ops::matmul(args, stream);  // prepares it
  const std::int64_t calls = std::max<std::int64_t>(1, bytes_per_round / args.b.bytes());
  const double seconds = seconds_of([&] {
    for (std::int64_t i = 0; i < calls; ++i) {
      args.b = pool.next(product.dtype, shape);
      ops::matmul(args, stream);
    }
  });
  return static_cast<double>(calls * args.b.bytes()) / seconds;
}

void print(const Product& product) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < product.ours.size(); ++i) {
    ratios.push_back(product.ours[i] / product.read[i]);
  }
  std::printf(R"({"k":%ld,"n":%ld,"transposed":%s,"dtype":"%s","m":%ld,"threads":%d,"GB/s":%.1f,)"
              R"("read GB/s":%.1f,"of read":%.2f,"oneDNN GB/s":%.1f})"
              "\n",
              product.layer.inputs, product.layer.outputs,
              product.layer.transposed ? "true" : "false",
              product.dtype == DType::f32 ? "f32" : "bf16", product.rows, compute_threads(),
              median(product.ours) / 1e9, median(product.read) / 1e9, median(ratios),
              median(product.oneDNN) / 1e9);
}

TEST_CASE("FewRows bench: bandwidth of products in decoding", "[bench]") {
  const char* const number = std::getenv("DSTRAIN_ROUNDS");
  const int rounds = number == nullptr ? 9 : std::atoi(number);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  Pool pool(stream);
  std::vector<Product> products;
  for (const Layer& layer : layers) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const std::int64_t rows : {1, 4, 16})
        products.push_back({layer, dtype, rows, {}, {}, {}});
    }
  }
  for (int round = 0; round < rounds; ++round) {
    for (Product& product : products) {
      product.read.push_back(pool.read());
      product.ours.push_back(rate_of(product, false, pool, stream));
      product.oneDNN.push_back(rate_of(product, true, pool, stream));
    }
  }
  for (const Product& product : products) print(product);
  CHECK(!products.empty());
}

}  // namespace
}  // namespace dstrain
