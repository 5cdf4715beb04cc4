#include "runtime/comm/nccl/nccl_communicator.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>

#include "runtime/base/log.h"
#include "runtime/device/cuda/cuda_check.h"
#include "runtime/device/cuda/cuda_stream_access.h"
#include "runtime/tensor/device_access.h"

namespace dstrain::comm {
namespace {

ncclDataType_t nccl_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    default:
      fail(ErrorCode::internal, "NCCL adds up no {}", name_of(dtype));
  }
}

/// NCCL sees data that is only moved as bytes.
std::size_t bytes_of(const TensorView& view) {
  return static_cast<std::size_t>(view.bytes());
}

/// Returns the id that rank 0 makes for all ranks.
ncclUniqueId agree_on_id(ControlGroup& control) {
  ncclUniqueId id{};
  if (control.rank() == 0) {
    const NcclCalls calls{nccl().value(), nullptr};
    DSTRAIN_NCCL_CHECK(calls, ncclGetUniqueId, &id);
  }
  const std::string all = control.broadcast({id.internal, sizeof(id.internal)}, 0);
  std::memcpy(id.internal, all.data(), sizeof(id.internal));
  return id;
}

}  // namespace

NcclPresence find_nccl() {
  const Result<NcclApi>& opened = nccl();
  if (!opened.ok()) return {.version = "", .obstacle = opened.error()};
  int version = 0;
  const ncclResult_t result = opened.value().ncclGetVersion(&version);
  if (result != ncclSuccess) {
    return {
        .version = "",
        .obstacle = fmt::format("ncclGetVersion: {}", opened.value().ncclGetErrorString(result))};
  }
  return {.version = fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100),
          .obstacle = ""};
}

std::unique_ptr<Communicator> make_nccl_communicator(NcclMember member) {
  return std::make_unique<NcclCommunicator>(std::move(member));
}

NcclCommunicator::NcclCommunicator(NcclMember member)
    : member_(std::move(member)),
      own_{member_.control->rank(), member_.control->size()},
      connection_(member_.gpu),
      watch_(member_.control->split({.color = 0, .key = own_.rank}),
             connection_,
             member_.timeout_seconds) {
  try {
    connect();
  } catch (const Error& error) {
    if (watch_.failure()->get() || member_.control->failure()) throw;  // already spread
    const std::string why = fmt::format("connecting rank {}: {}", own_.rank, error.what());
    watch_.fail_with({error.code(), why});
    member_.control->spread({error.code(), why});
    throw Error(error.code(), why);
  }
}

void NcclCommunicator::connect() {
  const ncclUniqueId id = agree_on_id(*member_.control);
  watch_.begin({Operation::join, DType::u8, 0, 0});
  connection_.connect(id, own_);
  watch_.end();
  if (const std::exception_ptr failed = watch_.failure()->get()) std::rethrow_exception(failed);
  void* words = nullptr;
  DSTRAIN_CUDA_CHECK(cudaMalloc(&words, static_cast<std::size_t>(own_.size) * 8), "GPU {}",
                     member_.gpu);
  tail_ = UniqueHandle<DeviceWordsTraits>(static_cast<std::byte*>(words));
}

NcclCommunicator::~NcclCommunicator() {
  if (std::uncaught_exceptions() > 0) {
    connection_.abort();
    return;
  }
  queue_.wait_until_idle();
  try {
    watch_.leave();
    connection_.close();
  } catch (const Error& error) {
    log_warning(fmt::format("rank {} leaves NCCL: {}", own_.rank, error.what()));
  }
}

/// Calls `tell` once `stream` has done all its work so far, unless the group has failed by then.
/// The queue sleeps meanwhile, because it is not urgent and polling would occupy a core.
void NcclCommunicator::follow(const cuda::CudaStream& stream, std::function<void()> tell) {
  constexpr unsigned sleeps = cudaEventBlockingSync | cudaEventDisableTiming;
  cudaEvent_t event = nullptr;
  DSTRAIN_CUDA_CHECK(cudaEventCreateWithFlags(&event, sleeps), "GPU {}", member_.gpu);
  const auto point = std::make_shared<UniqueHandle<cuda::EventTraits>>(event);  // tasks are copied
  DSTRAIN_CUDA_CHECK(cudaEventRecord(event, stream.handle()), "a stream of GPU {}", member_.gpu);
  queue_.run([this, point, tell = std::move(tell)] {
    cuda::use_gpu(member_.gpu);
    DSTRAIN_CUDA_CHECK(cudaEventSynchronize(point->get()), "an event of GPU {}", member_.gpu);
    if (watch_.failure()->get() == nullptr) tell();
  });
}

template <class Launch>
void NcclCommunicator::run(const Call& call, StreamView view, const Launch& launch) {
  cuda::CudaStream& stream = cuda::cuda_stream(view);
  stream.fail_when(watch_.failure());
  if (call.numel == 0 || stream.drops()) return;
  follow(stream, [this, call] {
    watch_.begin(call);
    if (observer() != nullptr) observer()->begin(call);
  });
  try {
    launch_observed(call, view, [&] { launch(stream.handle()); });
  } catch (const Error& error) {
    if (watch_.failure()->get()) return;  // the stream reports it
    const std::string why =
        fmt::format("{} on rank {}: {}", to_string(call), own_.rank, error.what());
    watch_.fail_with({error.code(), why});
    throw Error(error.code(), why);
  }
  follow(stream, [this, call] {
    if (observer() != nullptr) observer()->end(call);
    watch_.end();
  });
}

void NcclCommunicator::gather_bytes(Shards shards, Bytes bytes, cudaStream_t stream) {
  connection_.call([&](const NcclCalls& calls) {
    DSTRAIN_NCCL_CHECK(calls, ncclAllGather, shards.own, shards.whole,
                       static_cast<std::size_t>(bytes), ncclUint8, calls.comm, stream);
  });
}

void NcclCommunicator::sum(Shards shards, std::int64_t numel, DType dtype, cudaStream_t stream) {
  connection_.call([&](const NcclCalls& calls) {
    DSTRAIN_NCCL_CHECK(calls, ncclReduceScatter, shards.whole, shards.own,
                       static_cast<std::size_t>(numel), nccl_type(dtype), ncclSum, calls.comm,
                       stream);
  });
}

/// `whole` has a shard of `numel` elements for each rank.
void NcclCommunicator::sum_whole(std::byte* whole,
                                 std::int64_t numel,
                                 DType dtype,
                                 cudaStream_t stream) {
  const Bytes bytes = numel * size_of(dtype);
  const Shards shards{whole + rank() * bytes, whole};
  sum(shards, numel, dtype, stream);
  gather_bytes(shards, bytes, stream);
}

/// Sums fewer elements than there are ranks: each shard is one element, the last ones are zeros.
void NcclCommunicator::sum_tail(const TensorView& tail, cudaStream_t stream) {
  const auto bytes = static_cast<std::size_t>(tail.bytes());
  const auto all = static_cast<std::size_t>(size() * size_of(tail.dtype()));
  const auto check = [&](cudaError_t error, const char* function) {
    if (error == cudaSuccess) return;
    cuda::fail_call(error, function,
                    fmt::format("the end of an all_reduce on GPU {}", member_.gpu));
  };
  check(cudaMemsetAsync(tail_.get(), 0, all, stream), "cudaMemsetAsync");
  check(cudaMemcpyAsync(tail_.get(), device_access(tail), bytes, cudaMemcpyDefault, stream),
        "cudaMemcpyAsync");
  sum_whole(tail_.get(), 1, tail.dtype(), stream);
  check(cudaMemcpyAsync(device_access(tail), tail_.get(), bytes, cudaMemcpyDefault, stream),
        "cudaMemcpyAsync");
}

void NcclCommunicator::all_gather(TensorView shard, TensorView whole, StreamView stream) {
  run(all_gather_call(shard, whole, own_), stream, [&](cudaStream_t handle) {
    gather_bytes({device_access(shard), device_access(whole)}, shard.bytes(), handle);
  });
}

void NcclCommunicator::reduce_scatter(TensorView whole, TensorView shard, StreamView stream) {
  run(reduce_scatter_call(whole, shard, own_), stream, [&](cudaStream_t handle) {
    sum({device_access(shard), device_access(whole)}, shard.numel(), whole.dtype(), handle);
  });
}

void NcclCommunicator::all_reduce(TensorView values, StreamView stream) {
  run(all_reduce_call(values), stream, [&](cudaStream_t handle) {
    const std::int64_t numel = values.numel() / size();
    const std::int64_t rest = values.numel() % size();
    const TensorView flat = values.reshaped({values.numel()});
    if (numel > 0) sum_whole(device_access(flat), numel, values.dtype(), handle);
    if (rest > 0) sum_tail(flat.part(numel * size(), {rest}), handle);
  });
}

void NcclCommunicator::all_to_all(TensorView parts, TensorView received, StreamView stream) {
  run(all_to_all_call(parts, received, own_), stream, [&](cudaStream_t handle) {
    const Bytes bytes = parts.bytes() / size();
    const auto count = static_cast<std::size_t>(bytes);
    connection_.call([&](const NcclCalls& calls) {
      calls.require(calls.api.ncclGroupStart(), "ncclGroupStart");
      ncclResult_t sent = ncclSuccess;
      ncclResult_t expected = ncclSuccess;
      const auto note = [](ncclResult_t& first, ncclResult_t result) {
        if (first == ncclSuccess || first == ncclInProgress) first = result;
      };
      for (int r = 0; r < size(); ++r) {
        note(sent, calls.api.ncclSend(device_access(parts) + r * bytes, count, ncclUint8, r,
                                      calls.comm, handle));
        note(expected, calls.api.ncclRecv(device_access(received) + r * bytes, count, ncclUint8, r,
                                          calls.comm, handle));
      }
      // Ends the group whatever has failed: nothing is aborted within a group.
      const ncclResult_t ended = calls.api.ncclGroupEnd();
      calls.require(sent, "ncclSend");
      calls.require(expected, "ncclRecv");
      calls.require(ended, "ncclGroupEnd");
    });
  });
}

void NcclCommunicator::broadcast(TensorView values, int root, StreamView stream) {
  run(broadcast_call(values, root, own_), stream, [&](cudaStream_t handle) {
    connection_.call([&](const NcclCalls& calls) {
      DSTRAIN_NCCL_CHECK(calls, ncclBroadcast, device_access(values), device_access(values),
                         bytes_of(values), ncclUint8, root, calls.comm, handle);
    });
  });
}

void NcclCommunicator::send(TensorView values, int target, StreamView stream) {
  run(send_call(values, target, own_), stream, [&](cudaStream_t handle) {
    connection_.call([&](const NcclCalls& calls) {
      DSTRAIN_NCCL_CHECK(calls, ncclSend, device_access(values), bytes_of(values), ncclUint8,
                         target, calls.comm, handle);
    });
  });
}

void NcclCommunicator::receive(TensorView values, int source, StreamView stream) {
  run(receive_call(values, source, own_), stream, [&](cudaStream_t handle) {
    connection_.call([&](const NcclCalls& calls) {
      DSTRAIN_NCCL_CHECK(calls, ncclRecv, device_access(values), bytes_of(values), ncclUint8,
                         source, calls.comm, handle);
    });
  });
}

std::unique_ptr<Communicator> NcclCommunicator::split(Split split) {
  return make_nccl_communicator(
      {member_.control->split(split), member_.gpu, member_.timeout_seconds, nullptr});
}

}  // namespace dstrain::comm
