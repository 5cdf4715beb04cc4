#pragma once
#include <algorithm>

#include "runtime/comm/communicator.h"
#include "runtime/comm/host_sum.h"
#include "runtime/tensor/buffer.h"
#include "tests/comm/reference.h"

namespace dstrain::test {

/// Values of f32, bf16 or f16 in memory of a given kind. They start `offset` elements into their
/// block.
class Tensor {
 public:
  Tensor(const Floats& values,
         MemoryResource& memory,
         StreamView stream,
         std::int64_t offset,
         DType dtype = DType::f32)
      : numel_(static_cast<std::int64_t>(values.size())),
        offset_(offset),
        dtype_(dtype),
        block_((numel_ + offset) * size_of(dtype), memory, stream) {
    const HostView all = view();
    comm::copy_bytes(TypedValues(values, dtype).view({numel_}).data(), all.data(), all.bytes());
  }

  [[nodiscard]] HostView view() const { return view(0, numel_); }
  [[nodiscard]] HostView view(std::int64_t begin, std::int64_t numel) const {
    return block_.block().cut((offset_ + begin) * size_of(dtype_), dtype_, {numel});
  }
  [[nodiscard]] Floats values() const {
    const auto* const floats = reinterpret_cast<const float*>(view().data());
    if (dtype_ == DType::f32) return {floats, floats + numel_};
    Floats values;
    values.reserve(static_cast<std::size_t>(numel_));
    const auto* const halves = reinterpret_cast<const std::uint16_t*>(view().data());
    for (std::int64_t i = 0; i < numel_; ++i) values.push_back(half_value(halves[i], dtype_));
    return values;
  }

 private:
  std::int64_t numel_;
  std::int64_t offset_;
  DType dtype_;
  HostBuffer block_;
};

/// Returns once all ranks have called it.
inline void meet(comm::Communicator& communicator, StreamView stream) {
  Floats one{1};
  communicator.all_reduce(HostView(one, Shape{1}), stream);
  stream.synchronize();
}

/// In which memory a rank keeps the tensors that go into a collective and those that come out.
struct Placement {
  MemoryResource& in;
  MemoryResource& out;
  std::int64_t offset = 0;  ///< into their blocks, in elements
};

/// All the ways to place them; in the last ones the ranks differ. `host` is other memory than the
/// communicator's. Fewer for a communicator that has no memory of its own.
inline std::vector<Placement> placements(comm::Communicator& communicator, MemoryResource& host) {
  MemoryResource& own = communicator.memory();
  if (dynamic_cast<HostMemory*>(&own) != nullptr) return {{host, host}, {own, own, 3}};
  const bool even = communicator.rank() % 2 == 0;
  return {{host, host},
          {own, own, 0},
          {own, host, 3},
          {host, own, 17},
          {own, own, 5},
          {even ? own : host, even ? own : host, 1},
          {even ? host : own, even ? own : host}};
}

}  // namespace dstrain::test
