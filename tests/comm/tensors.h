#pragma once
#include <algorithm>

#include "runtime/comm/communicator.h"
#include "runtime/tensor/buffer.h"
#include "tests/comm/reference.h"

namespace dstrain::test {

/// Floats in memory of a given kind. They start `offset` elements into their block.
class Tensor {
 public:
  Tensor(const Floats& values, MemoryResource& memory, StreamView stream, std::int64_t offset)
      : numel_(static_cast<std::int64_t>(values.size())),
        offset_(static_cast<std::size_t>(offset)),
        block_((numel_ + offset) * size_of(DType::f32), memory, stream) {
    std::copy(values.begin(), values.end(), floats().begin());
  }

  [[nodiscard]] HostView view() { return {floats(), Shape{numel_}}; }
  [[nodiscard]] HostView view(std::int64_t begin, std::int64_t numel) {
    return {floats().subspan(static_cast<std::size_t>(begin)), Shape{numel}};
  }
  [[nodiscard]] Floats values() const { return {floats().begin(), floats().end()}; }

 private:
  [[nodiscard]] std::span<float> floats() const { return block_.as<float>().subspan(offset_); }

  std::int64_t numel_;
  std::size_t offset_;
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
