#include "runtime/ops/decide_step.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"
#include "tests/support/catch.h"

namespace dstrain {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// What one rank has summed.
struct Total {
  std::vector<double> terms;  ///< of the squares
  double loss = 0;
};

ops::StepDecision decide(const std::vector<Total>& ranks,
                         double labels,
                         double norm_max,
                         double loss_scale = 1) {
  std::vector<std::int64_t> rows(ranks.size() * ops::step_total_numel);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    ExactSum squares;
    for (const double term : ranks[rank].terms) squares.add(term);
    std::int64_t* const row = rows.data() + rank * ops::step_total_numel;
    std::memcpy(row, &squares, sizeof(squares));
    std::memcpy(row + ExactSum::numel, &ranks[rank].loss, sizeof(double));
  }
  ops::StepDecision decision;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  ops::decide_step(
      {.totals = HostView(rows.data(), DType::i64, {std::ssize(ranks), ops::step_total_numel}),
       .labels = HostView(&labels, DType::f64, {1}),
       .loss_scale = HostView(&loss_scale, DType::f64, {1}),
       .decision = ops::view_of(decision),
       .norm_max = norm_max},
      stream);
  return decision;
}

TEST_CASE("clip_scale: only norms over the limit are scaled", "[ops][norm]") {
  CHECK(ops::clip_scale(0.5, 1.0) == 1.0);
  CHECK(ops::clip_scale(4.0, 0.0) == 1.0);
  CHECK(ops::clip_scale(4.0, 1.0) == Catch::Approx(0.25).epsilon(1e-6));
}

TEST_CASE("clip_scale: the norm counts for 1e-6 more", "[ops][norm]") {
  CHECK(ops::clip_scale(1e-6, 1e-6) == 0.5);
  CHECK(ops::clip_scale(3e-6, 1e-6) == Catch::Approx(0.25).epsilon(1e-12));
  CHECK(ops::clip_scale(1.0, 1.0) == 1.0 / (1.0 + 1e-6));
  CHECK(ops::clip_scale(0.0, 1.0) == 1.0);
}

TEST_CASE("Step decision: sums of all ranks", "[ops][decide_step]") {
  const ops::StepDecision decision = decide({{{9, 1e-30}, 0.1}, {{16}, 0.2}, {{0}, 0.3}}, 4, 2);
  CHECK(decision.loss == ((0.1 + 0.2) + 0.3) / 4);
  CHECK(decision.gradient_norm == 5);
  CHECK(decision.gradient_scale == 2 / (5 + 1e-6));
  CHECK(decision.is_taken());
}

TEST_CASE("Step decision: gradients of a scaled loss", "[ops][decide_step]") {
  const ops::StepDecision decision = decide({{{9 * 64}, 0.5}, {{16 * 64}, 0.5}}, 4, 2, 8);
  CHECK(decision.loss == 0.25);
  CHECK(decision.gradient_norm == 5);
  CHECK(decision.gradient_scale == 2 / (5 + 1e-6) / 8);
  CHECK(decide({{{9 * 64}, 0.5}}, 4, 0, 8).gradient_scale == 0.125);
}

TEST_CASE("Step decision: squares are added without rounding", "[ops][decide_step]") {
  // In double, in this order, each 1 would be lost.
  std::vector<Total> ranks(9, Total{{1}, 0});
  ranks[0].terms = {0x1p53};
  CHECK(decide(ranks, 1, 0).gradient_norm == std::sqrt(0x1p53 + 8));
}

TEST_CASE("Step decision: a step that is not finite is skipped", "[ops][decide_step]") {
  const double bad = GENERATE(as<double>{}, infinity, std::numeric_limits<double>::quiet_NaN());
  CHECK_FALSE(decide({{{1}, 0}, {{bad}, 0}}, 1, 1).is_taken());
  CHECK_FALSE(decide({{{1}, bad}, {{1}, 0}}, 1, 1).is_taken());
}

TEST_CASE("Step decision: totals of other extents are refused", "[ops][decide_step]") {
  std::vector<std::int64_t> words(ExactSum::numel);
  double labels = 1;
  ops::StepDecision decision;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  CHECK_THROWS_AS(
      ops::decide_step({.totals = HostView(words.data(), DType::i64, {1, ExactSum::numel}),
                        .labels = HostView(&labels, DType::f64, {1}),
                        .loss_scale = HostView(&labels, DType::f64, {1}),
                        .decision = ops::view_of(decision)},
                       stream),
      Error);
}

}  // namespace
}  // namespace dstrain
