// What ops need beside their tensors, on kinds of devices that this machine may lack.
#include <vector>

#include "runtime/device/cpu_stream.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/attention_scratch.h"
#include "runtime/ops/matmul.h"
#include "tests/support/catch.h"

namespace dstrain {
namespace {

TEST_CASE("Workspace: of a product the same on every machine", "[ops][workspace]") {
  struct Row {
    DType dtype;
    ops::MatmulShape shape;
    bool a_transposed;
    Bytes cpu;
  };
  const auto row = GENERATE(Row{DType::f32, {64, 768, 768}, false, 0},
                            Row{DType::f32, {64, 3072, 768}, false, 9437184},
                            Row{DType::f32, {2048, 3072, 768}, false, 9437184},
                            Row{DType::f32, {768, 3072, 4096}, true, 25165824},
                            Row{DType::bf16, {64, 768, 768}, false, 2752512},
                            Row{DType::bf16, {2048, 3072, 768}, false, 13861888},
                            Row{DType::bf16, {768, 3072, 4096}, true, 27385856});
  const auto [m, n, k] = row.shape;
  CAPTURE(row.dtype, m, n, k, row.a_transposed);
  const ops::MatmulArgs product{
      .a = {row.dtype, row.a_transposed ? Shape{k, m} : Shape{m, k}},
      .b = {row.dtype, {k, n}},
      .out = {row.a_transposed ? DType::f32 : row.dtype, {m, n}},
      .a_transposed = row.a_transposed,
  };
  CHECK(ops::matmul_workspace(product, DeviceKind::cpu) == row.cpu);
  CHECK(ops::matmul_workspace(product, DeviceKind::cuda) == 32 * mebibyte);
}

TEST_CASE("Workspace: more rows of a product never need less", "[ops][workspace]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const auto [n, k] = GENERATE(table<std::int64_t, std::int64_t>(
      {{768, 768}, {1280, 5120}, {5120, 1280}, {2048, 4096}, {11008, 4096}, {50000, 48}}));
  CAPTURE(dtype, n, k);
  Bytes before = 0;
  for (std::int64_t m = 1; m <= 2100; ++m) {
    const ops::MatmulArgs product{
        .a = {dtype, {m, k}}, .b = {dtype, {k, n}}, .out = {dtype, {m, n}}};
    const Bytes bytes = ops::matmul_workspace(product, DeviceKind::cpu);
    if (bytes < before) FAIL(m << " rows need " << bytes << ", and one less " << before);
    before = bytes;
  }
}

TEST_CASE("Workspace: an op refuses one that is too small", "[ops][workspace]") {
  std::vector<float> a(64 * 64);
  std::vector<float> b(64 * 1024);  // its rows fall on the same sets of the cache, so it is packed
  std::vector<float> out(64 * 1024);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::MatmulArgs product{
      .a = HostView(a, {64, 64}), .b = HostView(b, {64, 1024}), .out = HostView(out, {64, 1024})};
  CHECK_THROWS_WITH(ops::matmul(product, stream),
                    Catch::Matchers::ContainsSubstring("262144 needed"));
  std::vector<std::byte> space(262144 - 64);
  product.workspace = HostView(space.data(), DType::u8, {std::ssize(space)});
  CHECK_THROWS_WITH(ops::matmul(product, stream),
                    Catch::Matchers::ContainsSubstring("262144 needed"));
}

TEST_CASE("Workspace: of attention the same on every machine", "[ops][workspace]") {
  struct Row {
    ops::AttentionSizes sizes;
    Bytes forward;
    Bytes backward;
    Bytes cuda;
  };
  const auto row =
      GENERATE(Row{{1, 10, 10, 2, 2, 10}, 81920, 181248, 128 + 8192},
               Row{{4, 512, 512, 12, 12, 64}, 20840448, 36765696, 98304 + 14155776},
               Row{{8, 1000, 1000, 25, 25, 64}, 52953088, 91226112, 800000 + 222822400});
  CAPTURE(row.sizes.sequences, row.sizes.tokens);
  CHECK(ops::attention_forward_workspace(row.sizes, {}, DeviceKind::cpu) == row.forward);
  CHECK(ops::attention_backward_workspace(row.sizes, {}, DeviceKind::cpu) == row.backward);
  CHECK(ops::attention_forward_workspace(row.sizes, {}, DeviceKind::cuda) == 0);
  CHECK(ops::attention_backward_workspace(row.sizes, {}, DeviceKind::cuda) == row.cuda);
  const ops::AttentionRule rotary{.rotary = {8}};  // of each position so many floats
  CHECK(ops::attention_forward_workspace(row.sizes, rotary, DeviceKind::cpu) ==
        row.forward + row.sizes.tokens * 8 * 4);
  const Bytes turned =  // queries and keys, two bytes for each of their elements
      round_up(row.sizes.sequences * row.sizes.tokens * row.sizes.heads * row.sizes.head_size * 2,
               64);
  CHECK(ops::attention_forward_workspace(row.sizes, rotary, DeviceKind::cuda) == 2 * turned);
  CHECK(ops::attention_backward_workspace(row.sizes, rotary, DeviceKind::cuda) ==
        row.cuda + 2 * turned);
  const ops::AttentionRule biased{.buckets = {32, 128, true}};  // and by distance
  const std::int64_t distances = 2 * round_up(row.sizes.tokens, 64);
  CHECK(ops::attention_forward_workspace(row.sizes, biased, DeviceKind::cpu) ==
        row.forward + row.sizes.heads * distances * 4);
}

TEST_CASE("Workspace: of attention on a GPU keeps gradients of scores while they fit",
          "[ops][workspace]") {
  struct Row {
    ops::AttentionSizes sizes;
    ops::AttentionRule rule;
    Bytes kept;  ///< of 4096 bytes for 32 queries and 64 keys, where a query sees some of them
  };
  constexpr Bytes patch = 4096;
  const auto row = GENERATE_COPY(
      values<Row>({{{1, 33, 100, 2, 1, 64}, {.causal = false}, Bytes{2 * 2 * 2} * patch},
                   {{1, 128, 128, 1, 1, 64}, {}, Bytes{1 + 1 + 2 + 2} * patch},
                   {{1, 128, 128, 1, 1, 64}, {.buckets = {32, 128, true}}, 0},
                   {{1, 128, 128, 1, 1, 136}, {}, 0},
                   {{2, 4096, 4096, 32, 8, 128}, {}, Bytes{2 * 32 * 64 * 65} * patch},
                   {{1, 8192, 8192, 32, 8, 128}, {}, Bytes{16 * 128 * 129} * patch},
                   {{1, 16384, 16384, 32, 8, 128}, {}, 0},
                   {{64, 2048, 2048, 16, 16, 64}, {}, Bytes{16 * 16 * 32 * 33} * patch}}));
  CAPTURE(row.sizes.sequences, row.sizes.tokens, row.sizes.head_size);
  const ops::ScoreGradients kept(row.sizes, row.rule);
  CHECK(kept.sequences * kept.kv_heads * row.sizes.group() * kept.head_patches * patch == row.kept);
}

}  // namespace
}  // namespace dstrain
