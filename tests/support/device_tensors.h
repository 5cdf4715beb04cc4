#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/ops/convert.h"
#include "runtime/ops/decide_step.h"
#include "runtime/ops/fill_zero.h"
#include "runtime/ops/matmul.h"
#include "runtime/rules/registry.h"
#include "runtime/tensor/buffer.h"
#include "tests/support/random_values.h"
#include "tests/support/typed_values.h"

namespace dstrain::test {

/// What a tensor holds.
struct TensorBytes {
  DType dtype;
  std::vector<std::byte> bytes;
  friend bool operator==(const TensorBytes&, const TensorBytes&) = default;
};

/// Tensors on a device, filled from the host; all of them are the result of a run.
class DeviceTensors {
 public:
  DeviceTensors(DType dtype, MemoryResource& memory, StreamView stream)
      : dtype_(dtype), memory_(memory), stream_(stream) {}
  [[nodiscard]] DType dtype() const { return dtype_; }
  TensorView vector(std::int64_t numel) { return random(dtype_, {numel}); }
  TensorView matrix(std::int64_t height, std::int64_t width) {
    return random(dtype_, {height, width});
  }
  TensorView random(Shape shape) { return random(dtype_, shape); }
  TensorView f32(Shape shape) { return random(DType::f32, shape); }
  TensorView bf16(std::int64_t numel) { return random(DType::bf16, {numel}); }
  TensorView numbers(Shape shape, std::uint64_t bound) {
    ids_.push_back(std::make_unique<std::vector<std::int32_t>>(
        random_tokens(shape.numel(), ids_.size() + 1, bound)));
    return copy_of(HostView(*ids_.back(), shape));
  }
  TensorView number(double value) {
    doubles_.push_back(std::make_unique<double>(value));
    return copy_of(HostView(doubles_.back().get(), DType::f64, {1}));
  }
  /// What dropout draws from.
  TensorView counter(std::int64_t step, std::int64_t first_sample) {
    counters_.push_back(std::make_unique<Counter>(Counter{step, first_sample}));
    return copy_of(HostView(*counters_.back(), {2}));
  }
  TensorView decision(const ops::StepDecision& decision) {
    decisions_.push_back(std::make_unique<ops::StepDecision>(decision));
    return copy_of(ops::view_of(*decisions_.back()));
  }
  /// Those of an update rule.
  TensorView scalars(const rules::ScalarValues& scalars) {
    const std::vector<float> values(scalars.begin(), scalars.end());
    values_.push_back(std::make_unique<TypedValues>(values, DType::f32));
    return copy_of(values_.back()->view({rules::scalar_numel}));
  }
  /// i32: `value(i)` of each element.
  template <class Value>
  TensorView ramp(Shape shape, const Value& value) {
    ids_.push_back(std::make_unique<std::vector<std::int32_t>>());
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
      ids_.back()->push_back(static_cast<std::int32_t>(value(i)));
    }
    return copy_of(HostView(*ids_.back(), shape));
  }
  TensorView zeros(DType dtype, Shape shape) {
    const TensorView values = take(dtype, shape);
    ops::fill_zero(values, stream_);
    return values;
  }
  /// Memory that ops may use as they like: no result.
  TensorView workspace(Bytes bytes) {
    scratch_.emplace_back(bytes, memory_, stream_);
    return scratch_.back().block();
  }
  /// What `product` needs here.
  TensorView workspace(const ops::MatmulArgs& product) {
    return workspace(ops::matmul_workspace(product, stream_.device().kind));
  }
  [[nodiscard]] std::vector<TensorBytes> all() const {
    std::vector<TensorBytes> made;
    for (const TensorView& view : views_) {
      TensorBytes own{view.dtype(), std::vector<std::byte>(static_cast<std::size_t>(view.bytes()))};
      ops::convert(view, HostView(own.bytes.data(), view.dtype(), view.shape()), stream_);
      stream_.synchronize();
      made.push_back(std::move(own));
    }
    return made;
  }

 private:
  TensorView take(DType dtype, Shape shape) {
    buffers_.emplace_back(shape.numel() * size_of(dtype), memory_, stream_);
    views_.push_back(buffers_.back().block().cut(0, dtype, shape));
    return views_.back();
  }
  TensorView copy_of(const HostView& values) {
    const TensorView copy = take(values.dtype(), values.shape());
    ops::convert(values, copy, stream_);
    return copy;
  }
  TensorView random(DType dtype, Shape shape) {
    values_.push_back(
        std::make_unique<TypedValues>(random_values(shape.numel(), values_.size() + 1), dtype));
    return copy_of(values_.back()->view(shape));
  }

  using Counter = std::array<std::int64_t, 2>;

  DType dtype_;
  MemoryResource& memory_;
  StreamView stream_;
  std::vector<std::unique_ptr<TypedValues>> values_;  // on their way until the stream has run
  std::vector<std::unique_ptr<std::vector<std::int32_t>>> ids_;
  std::vector<std::unique_ptr<double>> doubles_;
  std::vector<std::unique_ptr<Counter>> counters_;
  std::vector<std::unique_ptr<ops::StepDecision>> decisions_;
  std::vector<Buffer> buffers_;
  std::vector<TensorView> views_;
  std::vector<Buffer> scratch_;
};

}  // namespace dstrain::test
