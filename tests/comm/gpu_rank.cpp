#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "runtime/backend/open_backend.h"
#include "runtime/base/log.h"
#include "runtime/comm/make_communicator.h"
#include "runtime/comm/self/self_communicator.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/device/event.h"
#include "runtime/device/host_queue.h"
#include "runtime/ops/convert.h"
#include "runtime/tensor/buffer.h"

/// A rank that computes on a GPU, for nccl_test: `comm_gpu_rank MODE` with the environment of a
/// rank. Prints one line at its end; exit status as a rank's.
namespace {

using namespace dstrain;
using comm::Communicator;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

/// Tells nothing but whether operations begin and end in turn.
class Counter final : public comm::CollectiveObserver {
 public:
  void begin(const comm::Call& call) override {
    if (running_ != comm::Call{}) std::abort();
    running_ = call;
  }
  void end(const comm::Call& call) override {
    if (running_ != call) std::abort();
    running_ = {};
    ++ended_;
  }
  [[nodiscard]] int ended() const { return ended_; }

 private:
  comm::Call running_;
  int ended_ = 0;
};

/// A rank with its GPU, connected, and the same ranks' communicator of host memory.
struct Rank {
  Rank()
      : worker(read_worker_env()),
        backend(open_backend({DeviceKind::cuda, worker.local_rank})),
        stream(backend->make_stream(Backend::StreamUse::computing)),
        world(comm::join_world(worker)),
        host(world.communicator->split({.color = 0, .key = worker.rank})),
        gpus(backend->connect({.communicator = std::move(world.communicator),
                               .control = *world.control,
                               .staging = memory,
                               .timeout_seconds = worker.timeout_seconds})) {}
  WorkerEnv worker;
  HostMemory memory;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Stream> stream;
  comm::World world;
  std::unique_ptr<Communicator> host;
  std::unique_ptr<Communicator> gpus;
};

using Bytes8 = std::vector<std::byte>;

/// Small numbers, so that their sums are exact in any order and in every dtype.
Bytes8 small_values(DType dtype, std::int64_t numel, int rank) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < numel; ++i) {
    values.push_back(static_cast<float>((rank * 7 + i * 3) % 9 - 4));
  }
  Bytes8 bytes(static_cast<std::size_t>(numel * size_of(dtype)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto store = [&](auto value) {
      std::memcpy(bytes.data() + i * sizeof(value), &value, sizeof(value));
    };
    if (dtype == DType::f32) store(values[i]);
    if (dtype == DType::bf16) store(to_bfloat16(values[i]));
    if (dtype == DType::f16) store(to_float16(values[i]));
    if (dtype == DType::i32) store(static_cast<std::int32_t>(values[i]));
    if (dtype == DType::i64) store(static_cast<std::int64_t>(values[i]));
  }
  return bytes;
}

/// What a collective works on: `numel` elements of each rank in `whole` and in `other`.
struct Tensors {
  TensorView shard;
  TensorView whole;
  TensorView other;
  [[nodiscard]] TensorView own(const Communicator& c) const {
    return whole.part(c.rank() * shard.numel(), {shard.numel()});
  }
};

/// Runs one operation; returns where its result is.
using Form = std::function<TensorView(Communicator& c, const Tensors& t, StreamView stream)>;

const std::map<std::string, Form>& forms() {
  static const std::map<std::string, Form> all{
      {"all_gather",
       [](Communicator& c, const Tensors& t, StreamView stream) {
         c.all_gather(t.shard, t.whole, stream);
         return t.whole;
       }},
      {"all_gather in place",
       [](Communicator& c, const Tensors& t, StreamView stream) {
         c.all_gather(t.own(c), t.whole, stream);
         return t.whole;
       }},
      {"reduce_scatter",
       [](Communicator& c, const Tensors& t, StreamView stream) {
         c.reduce_scatter(t.whole, t.shard, stream);
         return t.shard;
       }},
      {"reduce_scatter in place",
       [](Communicator& c, const Tensors& t, StreamView stream) {
         c.reduce_scatter(t.whole, t.own(c), stream);
         return t.own(c);
       }},
      {"all_reduce",
       [](Communicator& c, const Tensors& t, StreamView stream) {
         c.all_reduce(t.whole, stream);
         return t.whole;
       }},
      {"all_reduce of what cannot be shared out",
       [](Communicator& c, const Tensors& t, StreamView stream) {
         c.all_reduce(t.shard, stream);
         return t.shard;
       }},
      {"all_to_all",
       [](Communicator& c, const Tensors& t, StreamView stream) {
         c.all_to_all(t.whole, t.other, stream);
         return t.other;
       }},
      {"broadcast",
       [](Communicator& c, const Tensors& t, StreamView stream) {
         for (int root = 0; root < c.size(); ++root) c.broadcast(t.shard, root, stream);
         return t.shard;
       }},
      {"messages", [](Communicator& c, const Tensors& t, StreamView stream) {
         const int last = c.size() - 1;
         if (c.rank() == 0 && last > 0) c.send(t.shard, last, stream);
         if (c.rank() == last && last > 0) c.receive(t.shard, 0, stream);
         return t.shard;
       }}};
  return all;
}

/// The result of an operation on tensors of `memory`, by `c`.
Bytes8 result_of(const Form& form,
                 Communicator& c,
                 const Bytes8& values,
                 DType dtype,
                 MemoryResource& memory,
                 StreamView stream) {
  const auto bytes = static_cast<Bytes>(values.size());
  const std::int64_t whole = bytes / size_of(dtype);
  const std::int64_t numel = whole / c.size();
  const Buffer block(3 * bytes, memory, stream);
  const Tensors tensors{block.block().cut(0, dtype, {numel}),
                        block.block().cut(bytes, dtype, {whole}),
                        block.block().cut(2 * bytes, dtype, {whole})};
  const HostView given(const_cast<std::byte*>(values.data()), dtype, {whole});
  ops::convert(given, tensors.whole, stream);
  ops::convert(given.part(0, {numel}), tensors.shard, stream);
  const TensorView result = form(c, tensors, stream);
  Bytes8 read(static_cast<std::size_t>(result.bytes()));
  ops::convert(result, HostView(read.data(), dtype, result.shape()), stream);
  stream.synchronize();
  return read;
}

void compare(Rank& rank, Communicator& gpus, Communicator& host, std::int64_t numel) {
  CpuStream inline_stream(CpuStream::Mode::inline_on_caller);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::i32, DType::i64}) {
    const Bytes8 values = small_values(dtype, numel * host.size(), host.rank());
    for (const auto& [name, form] : forms()) {
      const Bytes8 expected = result_of(form, host, values, dtype, rank.memory, inline_stream);
      const Bytes8 found =
          result_of(form, gpus, values, dtype, rank.backend->memory(), *rank.stream);
      require(found == expected, fmt::format("{} of {} {} in {} ranks is another", name, numel,
                                             name_of(dtype), host.size()));
    }
  }
}

void check_results(Rank& rank) {
  for (const std::int64_t numel : {1, 2, 3, 64, 1001, 70'001}) {
    compare(rank, *rank.gpus, *rank.host, numel);
  }
  const Communicator::Split halves{.color = rank.worker.rank % 2, .key = -rank.worker.rank};
  const auto half = rank.gpus->split(halves);
  compare(rank, *half, *rank.host->split(halves), 100);
  const Communicator::Split alone{.color = half->rank()};
  const auto single = half->split(alone);
  require(single->size() == 1, "the size of a rank alone");
  compare(rank, *single, *comm::make_self_communicator(), 5);
  compare(rank, *rank.gpus, *rank.host, 7);
}

/// all_reduce has the bits of reduce_scatter and all_gather, on all ranks, and in each run.
void check_bits(Rank& rank) {
  const int size = rank.gpus->size();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    const std::int64_t whole = 3000 * size;
    Bytes8 values(static_cast<std::size_t>(whole * size_of(dtype)));
    for (std::int64_t i = 0; i < whole; ++i) {
      const float value = static_cast<float>(i % 1009) / 97.0F -
                          static_cast<float>((i * 31 + rank.worker.rank * 17) % 211) / 13.0F;
      const auto at = static_cast<std::size_t>(i * size_of(dtype));
      const BFloat16 bf16 = to_bfloat16(value);
      const Float16 f16 = to_float16(value);
      if (dtype == DType::f32) std::memcpy(values.data() + at, &value, 4);
      if (dtype == DType::bf16) std::memcpy(values.data() + at, &bf16, 2);
      if (dtype == DType::f16) std::memcpy(values.data() + at, &f16, 2);
    }
    const Form in_two = [](Communicator& c, const Tensors& t, StreamView stream) {
      c.reduce_scatter(t.whole, t.shard, stream);
      c.all_gather(t.shard, t.other, stream);
      return t.other;
    };
    const auto result = [&](const Form& form) {
      return result_of(form, *rank.gpus, values, dtype, rank.backend->memory(), *rank.stream);
    };
    const Bytes8 once = result(forms().at("all_reduce"));
    require(once == result(in_two), "all_reduce is not reduce_scatter and all_gather");
    require(once == result(forms().at("all_reduce")), "all_reduce does not repeat itself");
    const std::string own(reinterpret_cast<const char*>(once.data()), once.size());
    for (const std::string& other : rank.world.control->gather_texts(own)) {
      require(other == own, "the ranks have different sums");
    }
  }
}

/// An all_reduce of so many zeros.
void sum(Rank& rank, std::int64_t numel) {
  const Buffer block(numel * 4, rank.backend->memory(), *rank.stream);
  const std::vector<float> zeros(static_cast<std::size_t>(numel));
  const TensorView values = block.block().cut(0, DType::f32, {numel});
  ops::convert(HostView(const_cast<float*>(zeros.data()), DType::f32, {numel}), values,
               *rank.stream);
  rank.gpus->all_reduce(values, *rank.stream);
  rank.stream->synchronize();
}

void check_observer(Rank& rank) {
  Counter counter;
  rank.gpus->set_observer(&counter);
  for (int i = 0; i < 20; ++i) sum(rank, 1000 + i);
  rank.gpus.reset();  // tells the rest
  require(counter.ended() == 20, fmt::format("{} operations were told", counter.ended()));
}

/// How many of three that wait for a collective, which rank 1 aborts, hear of that: its stream,
/// another one and a queue of the host.
void check_waits(Rank& rank) {
  if (rank.worker.rank == 1) {
    rank.world.control->barrier();
    return rank.gpus->abort();
  }
  const auto other = rank.backend->make_stream(Backend::StreamUse::beside_computing);
  HostQueue queue(HostQueue::Mode::worker_thread);
  const Buffer block(64, rank.backend->memory(), *rank.stream);
  rank.gpus->all_reduce(block.block().cut(0, DType::f32, {16}), *rank.stream);
  const Event after = Event::record(*rank.stream);
  after.wait_on(*other);
  after.wait_on(queue);
  rank.world.control->barrier();
  int heard = 0;
  const auto wait = [&](const auto& synchronize) {
    try {
      synchronize();
    } catch (const Error& error) {
      if (error.code() == ErrorCode::aborted) ++heard;
    }
  };
  wait([&] { other->synchronize(); });
  wait([&] { queue.synchronize(); });
  wait([&] { rank.stream->synchronize(); });
  require(heard == 3, fmt::format("{} of 3 waits failed", heard));
  other->synchronize();  // which has told it
}

/// Leaves while a collective is on its way.
void sum_and_leave(Rank& rank) {
  const Buffer block(64, rank.backend->memory(), *rank.stream);
  rank.gpus->all_reduce(block.block().cut(0, DType::f32, {16}), *rank.stream);
  rank.gpus.reset();
  rank.stream->synchronize();
}

void sum_forever(Rank& rank) {
  for (int i = 0;; ++i) {
    sum(rank, 50'000);
    if (i != 10) continue;
    std::printf("running\n");
    std::fflush(stdout);
  }
}

/// Until the others are gone, or have failed.
void wait_for_others(Rank& rank) {
  rank.world.control->barrier();
}

void wait_for_signal() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigsuspend(&none);
}

void each_operation_once(Rank& rank) {
  for (const auto& [name, form] : forms()) {
    result_of(form, *rank.gpus, small_values(DType::f32, 7L * rank.gpus->size(), rank.worker.rank),
              DType::f32, rank.backend->memory(), *rank.stream);
  }
}

void run_mode(const std::string& mode, Rank& rank) {
  const bool second = rank.worker.rank == 1;
  if (mode == "results") check_results(rank);
  if (mode == "bits") check_bits(rank);
  if (mode == "observer") check_observer(rank);
  if (mode == "waits") check_waits(rank);
  if (mode == "once") each_operation_once(rank);
  if (mode == "forever") sum_forever(rank);
  if (mode == "late") second ? wait_for_signal() : sum(rank, 5);
  if (mode == "late leave") second ? wait_for_signal() : sum_and_leave(rank);
  if (mode == "disagree") sum(rank, second ? 6 : 5);
  if (mode == "leave") second ? rank.gpus.reset() : sum(rank, 5);
  if (mode == "abort") {
    if (second) rank.gpus->abort();
    sum(rank, 5);
  }
}

int run(const std::string& mode) {
  std::string line = "done";
  int status = status::done;
  try {
    Rank rank;
    run_mode(mode, rank);
    if (mode == "leave") wait_for_others(rank);
  } catch (const Error& error) {
    line = error.what();
    status = exit_status(error.code());
  } catch (const std::exception& error) {
    line = error.what();
    status = status::failed;
  }
  std::printf("%s\n", line.c_str());
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const level = std::getenv(env::log_level);
  start_log(level == nullptr ? "warning" : level);
  return run(argc > 1 ? argv[1] : "");
}
