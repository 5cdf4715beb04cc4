#include "runtime/comm/staged_communicator.h"

#include <algorithm>

#include "runtime/device/event.h"
#include "runtime/ops/convert.h"

namespace dstrain::comm {

/// A tensor in equal parts. A chunk takes the same elements of each part.
struct StagedCommunicator::Side {
  TensorView tensor;
  std::int64_t parts;

  [[nodiscard]] std::int64_t part_numel() const { return tensor.numel() / parts; }
  /// Elements [begin, begin + count) of part `index`.
  [[nodiscard]] TensorView chunk(std::int64_t index, std::int64_t begin, std::int64_t count) const {
    const TensorView flat = tensor.reshaped({tensor.numel()});
    return flat.part(index * part_numel() + begin, {count});
  }
};

StagedCommunicator::StagedCommunicator(std::unique_ptr<Communicator> inner, Staging staging)
    : inner_(std::move(inner)), staging_(staging), block_(staging.bytes, staging.memory, inline_) {}

template <class Task>
void StagedCommunicator::run_between_copies(StreamView stream, Task task) {
  Event::record(stream).wait_on(queue_);
  queue_.run(std::move(task));
  Event::record(queue_).wait_on(stream);
}

template <class Collective>
void StagedCommunicator::exchange(const Side& from,
                                  const Side& to,
                                  StreamView stream,
                                  Collective collective) {
  const DType dtype = from.tensor.dtype();
  DSTRAIN_CHECK(dtype == to.tensor.dtype() && from.part_numel() == to.part_numel() &&
                    from.tensor.numel() == from.part_numel() * from.parts &&
                    to.tensor.numel() == to.part_numel() * to.parts,
                "{} in {} parts to {} in {}", to_string(from.tensor.shape()), from.parts,
                to_string(to.tensor.shape()), to.parts);
  const std::int64_t largest = staging_.bytes / (size_of(dtype) * (from.parts + to.parts));
  DSTRAIN_CHECK(largest > 0, "a staging block of {} bytes", staging_.bytes);
  for (std::int64_t begin = 0; begin < from.part_numel(); begin += largest) {
    const std::int64_t count = std::min(largest, from.part_numel() - begin);
    const HostView sent = block_.block().cut(0, dtype, {from.parts * count});
    const HostView received = block_.block().cut(sent.bytes(), dtype, {to.parts * count});
    for (std::int64_t i = 0; i < from.parts; ++i) {
      ops::convert(from.chunk(i, begin, count), sent.part(i * count, {count}), stream);
    }
    run_between_copies(stream, [this, sent, received, collective] {
      collective(*inner_, sent, received, inline_);
    });
    for (std::int64_t i = 0; i < to.parts; ++i) {
      ops::convert(received.part(i * count, {count}), to.chunk(i, begin, count), stream);
    }
  }
}

template <class Collective>
void StagedCommunicator::pass(TensorView values, StreamView stream, Collective collective) {
  const std::int64_t largest = staging_.bytes / size_of(values.dtype());
  const Side all{values, 1};
  for (std::int64_t begin = 0; begin < values.numel(); begin += largest) {
    const std::int64_t count = std::min(largest, values.numel() - begin);
    const HostView staged = block_.block().cut(0, values.dtype(), {count});
    ops::convert(all.chunk(0, begin, count), staged, stream);
    run_between_copies(stream,
                       [this, staged, collective] { collective(*inner_, staged, inline_); });
    ops::convert(staged, all.chunk(0, begin, count), stream);
  }
}

void StagedCommunicator::all_gather(TensorView shard, TensorView whole, StreamView stream) {
  launch_observed(all_gather_call(shard, whole, group_rank()), stream, [&] {
    exchange({shard, 1}, {whole, size()}, stream,
             [](Communicator& inner, HostView from, HostView to, StreamView here) {
               inner.all_gather(from, to, here);
             });
  });
}

void StagedCommunicator::reduce_scatter(TensorView whole, TensorView shard, StreamView stream) {
  launch_observed(reduce_scatter_call(whole, shard, group_rank()), stream, [&] {
    exchange({whole, size()}, {shard, 1}, stream,
             [](Communicator& inner, HostView from, HostView to, StreamView here) {
               inner.reduce_scatter(from, to, here);
             });
  });
}

void StagedCommunicator::all_to_all(TensorView parts, TensorView received, StreamView stream) {
  launch_observed(all_to_all_call(parts, received, group_rank()), stream, [&] {
    exchange({parts, size()}, {received, size()}, stream,
             [](Communicator& inner, HostView from, HostView to, StreamView here) {
               inner.all_to_all(from, to, here);
             });
  });
}

void StagedCommunicator::all_reduce(TensorView values, StreamView stream) {
  launch_observed(all_reduce_call(values), stream, [&] {
    pass(values, stream, [](Communicator& inner, HostView staged, StreamView here) {
      inner.all_reduce(staged, here);
    });
  });
}

void StagedCommunicator::broadcast(TensorView values, int root, StreamView stream) {
  launch_observed(broadcast_call(values, root, group_rank()), stream, [&] {
    pass(values, stream, [root](Communicator& inner, HostView staged, StreamView here) {
      inner.broadcast(staged, root, here);
    });
  });
}

void StagedCommunicator::send(TensorView values, int target, StreamView stream) {
  launch_observed(send_call(values, target, group_rank()), stream, [&] {
    pass(values, stream, [target](Communicator& inner, HostView staged, StreamView here) {
      inner.send(staged, target, here);
    });
  });
}

void StagedCommunicator::receive(TensorView values, int source, StreamView stream) {
  launch_observed(receive_call(values, source, group_rank()), stream, [&] {
    pass(values, stream, [source](Communicator& inner, HostView staged, StreamView here) {
      inner.receive(staged, source, here);
    });
  });
}

std::unique_ptr<Communicator> StagedCommunicator::split(Split split) {
  return std::make_unique<StagedCommunicator>(inner_->split(split), staging_);
}

}  // namespace dstrain::comm
