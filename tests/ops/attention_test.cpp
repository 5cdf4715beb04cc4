#include "runtime/ops/attention.h"

#include <array>

#include <catch2/catch.hpp>

#include "runtime/device/cpu_stream.h"
#include "runtime/ops/tile_product.h"
#include "tests/support/central_difference.h"
#include "tests/support/random_values.h"
#include "tests/support/reference_ops.h"
#include "tests/support/tensor_compare.h"
#include "tests/support/typed_values.h"

namespace dstrain {
namespace {

struct AttentionCase {
  std::int64_t sequences, tokens, heads, head_size;
};

/// Tensors of one case.
struct Attention {
  explicit Attention(const AttentionCase& sizes, DType dtype = DType::f32, float scale = 1)
      : s(sizes),
        channels(sizes.heads * sizes.head_size),
        rows(sizes.sequences * sizes.tokens),
        qkv(test::random_values(rows * 3 * channels, 1, scale), dtype),
        output(test::random_values(rows * channels, 3), dtype),
        logsumexp(static_cast<std::size_t>(rows * sizes.heads)),
        gradient(test::random_values(rows * channels, 2), dtype),
        qkv_gradient(test::random_values(rows * 3 * channels, 4), dtype) {}

  void forward(const ops::DropoutSite& site = {}) {
    const Bytes bytes = ops::attention_forward_workspace(workspace_sizes(), DeviceKind::cpu);
    std::vector<std::byte> workspace(static_cast<std::size_t>(bytes));
    CpuStream stream(CpuStream::Mode::inline_on_caller);
    ops::attention_forward({.qkv = qkv.view({s.sequences, s.tokens, 3 * channels}),
                            .output = output.view({s.sequences, s.tokens, channels}),
                            .logsumexp = HostView(logsumexp, {s.sequences, s.heads, s.tokens}),
                            .workspace = HostView(workspace.data(), DType::u8, {bytes}),
                            .dropout = site},
                           stream);
  }
  void backward(const ops::DropoutSite& site = {}) {
    const Bytes bytes = ops::attention_backward_workspace(workspace_sizes(), DeviceKind::cpu);
    std::vector<std::byte> workspace(static_cast<std::size_t>(bytes));
    CpuStream stream(CpuStream::Mode::inline_on_caller);
    ops::attention_backward(
        {.qkv = qkv.view({s.sequences, s.tokens, 3 * channels}),
         .output = output.view({s.sequences, s.tokens, channels}),
         .logsumexp = HostView(logsumexp, {s.sequences, s.heads, s.tokens}),
         .output_gradient = gradient.view({s.sequences, s.tokens, channels}),
         .qkv_gradient = qkv_gradient.view({s.sequences, s.tokens, 3 * channels}),
         .workspace = HostView(workspace.data(), DType::u8, {bytes}),
         .dropout = site},
        stream);
  }
  [[nodiscard]] ops::AttentionSizes workspace_sizes() const {
    return {s.sequences, s.tokens, s.heads, channels};
  }
  [[nodiscard]] reference::AttentionSizes sizes() const {
    return {static_cast<std::size_t>(s.sequences), static_cast<std::size_t>(s.tokens),
            static_cast<std::size_t>(channels), static_cast<std::size_t>(s.heads)};
  }

  AttentionCase s;
  std::int64_t channels, rows;
  test::TypedValues qkv, output;
  std::vector<float> logsumexp;
  test::TypedValues gradient, qkv_gradient;
};

/// The multiplier of one probability, from the definition of groups and words.
reference::Dropper dropper(const ops::DropoutSite& site,
                           const std::array<std::int64_t, 2>& counter,
                           const AttentionCase& s) {
  return [=](std::size_t b, std::size_t h, std::size_t i, std::size_t j) {
    const std::size_t tiles = (static_cast<std::size_t>(s.tokens) + 63) / 64;
    const std::size_t group = (h * static_cast<std::size_t>(s.tokens) + i) * tiles + j / 64;
    const std::size_t sample = static_cast<std::size_t>(counter[1]) + b;
    const auto words =
        philox({site.seed, RandomPurpose::dropout, static_cast<std::uint32_t>(counter[0]),
                (std::uint64_t{sample} << 40U) + group * 16 + j % 16});
    const auto rate = static_cast<double>(site.rate);
    return static_cast<double>(words[j % 64 / 16]) < rate * 0x1p32 ? 0.0 : 1 / (1 - rate);
  };
}

/// What the products of bf16 tensors round on the way depends on the machine.
test::Tolerance output_tolerance(DType dtype) {
  if (dtype == DType::bf16 && ops::rounds_products()) return {2e-2, 0x1p-7};
  return test::tolerance::stored(dtype, test::tolerance::reduction);
}

TEST_CASE("Attention: forward agrees with the naive one", "[ops][attention]") {
  const AttentionCase sizes = GENERATE(
      AttentionCase{1, 1, 1, 1}, AttentionCase{2, 7, 3, 5}, AttentionCase{2, 63, 2, 8},
      AttentionCase{1, 64, 1, 24}, AttentionCase{1, 65, 2, 16}, AttentionCase{2, 200, 2, 40},
      AttentionCase{1, 129, 1, 128}, AttentionCase{1, 300, 1, 64}, AttentionCase{1, 100, 2, 33},
      AttentionCase{1, 90, 1, 300}, AttentionCase{1, 128, 3, 80}, AttentionCase{35, 9, 2, 4});
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  CAPTURE(sizes.tokens, sizes.head_size);
  Attention attention(sizes, dtype);
  attention.forward();
  const auto expected = reference::attention(attention.qkv.read_double(), attention.sizes());
  CHECK(test::difference(attention.output.read(), expected, output_tolerance(dtype)) == "");
}

TEST_CASE("Attention: large scores neither overflow nor vanish", "[ops][attention]") {
  Attention attention({1, 130, 1, 16}, DType::f32, 6);
  attention.forward();
  const auto expected = reference::attention(attention.qkv.read_double(), attention.sizes());
  CHECK(test::difference(attention.output.read(), expected, {5e-4, 1e-4}) == "");
}

TEST_CASE("Attention: backward agrees with central differences", "[ops][attention]") {
  const AttentionCase sizes = GENERATE(AttentionCase{1, 1, 1, 2}, AttentionCase{2, 5, 2, 3},
                                       AttentionCase{1, 17, 2, 8}, AttentionCase{1, 66, 1, 5},
                                       AttentionCase{1, 130, 1, 16}, AttentionCase{1, 70, 1, 100});
  const float rate = GENERATE(0.0F, 0.25F);
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  CAPTURE(sizes.tokens, sizes.head_size, rate);
  std::array<std::int64_t, 2> counter{2, 3};
  const ops::DropoutSite site{.rate = rate, .seed = 9, .counter = HostView(counter, {2})};
  Attention attention(sizes, dtype);
  attention.forward(site);
  attention.backward(site);
  const reference::Dropper drop = rate > 0 ? dropper(site, counter, sizes) : reference::Dropper{};
  auto qkv = attention.qkv.read_double();
  const auto expected_output = reference::attention(qkv, attention.sizes(), drop);
  CHECK(test::difference(attention.output.read(), expected_output, output_tolerance(dtype)) == "");
  // In bf16 backward reads the rounded output: an error of delta that no later sum averages out.
  const auto gradient_tolerance =
      is_half(dtype) ? test::Tolerance{2e-2, 0x1p-8} : test::tolerance::reduction;
  const std::size_t stride = qkv.size() > 1000 ? 83 : 1;
  const auto expected = test::central_differences(
      qkv,
      [&] {
        return test::weighted_sum(reference::attention(qkv, attention.sizes(), drop),
                                  attention.gradient.read());
      },
      stride);
  CHECK(test::difference(test::every(attention.qkv_gradient.read(), stride), expected,
                         gradient_tolerance) == "");
}

TEST_CASE("Attention: a sequence does not see its neighbours in the batch", "[ops][attention]") {
  Attention both({2, 70, 2, 8});
  both.forward();
  Attention second({1, 70, 2, 8});
  const std::vector<float> qkv = both.qkv.read();
  second.qkv.assign({qkv.begin() + 70 * 48, qkv.end()});
  second.forward();
  const std::vector<float> outputs = both.output.read();
  CHECK(second.output.read() == std::vector<float>(outputs.begin() + 70 * 16, outputs.end()));
}

TEST_CASE("Attention: later tokens do not change earlier outputs", "[ops][attention]") {
  Attention attention({1, 100, 1, 8});
  attention.forward();
  const std::vector<float> before = attention.output.read();
  std::vector<float> qkv = attention.qkv.read();
  std::fill(qkv.begin() + 77 * 24, qkv.end(), 50.0F);
  attention.qkv.assign(qkv);
  attention.forward();
  const std::vector<float> after = attention.output.read();
  CHECK(std::equal(before.begin(), before.begin() + 77 * 8, after.begin()));
}

}  // namespace
}  // namespace dstrain
