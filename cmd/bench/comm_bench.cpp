#include "cmd/bench/comm_bench.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "cmd/bench/collectives.h"
#include "cmd/bench/summary.h"
#include "runtime/comm/control/tree_control_group.h"
#include "runtime/comm/host_sum.h"
#include "runtime/comm/make_communicator.h"
#include "runtime/comm/message/message_communicator.h"
#include "runtime/comm/mpi/mpi_transport.h"
#include "runtime/comm/tcp/tcp_transport.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/os/socket.h"

namespace dstrain::bench {
namespace {

/// What all ranks must measure alike, or they wait for each other for ever.
std::vector<std::string> describe_alike(const Options& options) {
  return {"bench comm", fmt::format("--sizes {} bytes", fmt::join(options.sizes, ",")),
          fmt::format("--runs {}", options.runs), fmt::format("--cpu_time {}", options.cpu_time)};
}

struct Backend {
  std::string name;
  comm::Communicator& communicator;
};

/// What the job would train with, and, unless DSTRAIN_COMM chose that, whatever else could do it.
class Backends {
 public:
  Backends(const Options& options, const WorkerEnv& worker) : world_(comm::join_world(worker)) {
    comm::require_alike(world_, describe_alike(options));
    list_.push_back({default_name(worker), *world_.communicator});
    if (worker.comm != CommKind::automatic) return;
    add("tcp", comm::make_tcp_communicator(*world_.store, tcp_options(world_.worker, "bench/tcp")));
    if (worker.mpi != MpiKind::none) add("mpi", make_mpi(worker));
  }

  [[nodiscard]] std::span<const Backend> list() const { return list_; }
  [[nodiscard]] comm::ControlGroup& control() const { return *world_.control; }

 private:
  static std::string default_name(const WorkerEnv& worker) {
    if (worker.comm != CommKind::automatic) return name_of(worker.comm);
    return worker.local_world_size == worker.world_size ? "shm" : "hierarchical";
  }

  [[nodiscard]] static comm::TcpOptions tcp_options(const WorkerEnv& worker, std::string name) {
    const Result<std::string> address =
        local_address_towards({worker.master_addr, worker.master_port});
    if (!address.ok()) fail(ErrorCode::comm, "bench comm: {} (MASTER_ADDR)", address.error());
    return {.rank = worker.rank,
            .size = worker.world_size,
            .timeout_seconds = worker.timeout_seconds,
            .name = std::move(name),
            .address = address.value(),
            .token = worker.token};
  }

  [[nodiscard]] std::unique_ptr<comm::Communicator> make_mpi(const WorkerEnv& worker) {
    if (!world_.mpi) world_.mpi = comm::enter_mpi(worker);
    comm::TreeControlGroup::Options control{.tcp = tcp_options(worker, "bench/mpi")};
    comm::MessageCommunicator::Lines lines{
        comm::make_mpi_transport(world_.mpi, *world_.store,
                                 {.rank = worker.rank,
                                  .size = worker.world_size,
                                  .timeout_seconds = worker.timeout_seconds,
                                  .name = "bench"}),
        std::make_unique<comm::TreeControlGroup>(*world_.store, std::move(control))};
    return std::make_unique<comm::MessageCommunicator>(std::move(lines), worker.timeout_seconds);
  }

  void add(std::string name, std::unique_ptr<comm::Communicator> communicator) {
    list_.push_back({std::move(name), *communicator});
    others_.push_back(std::move(communicator));
  }

  comm::World world_;
  std::vector<std::unique_ptr<comm::Communicator>> others_;
  std::vector<Backend> list_;
};

/// One row of the table. Times run by run, of the slowest rank.
struct CollectiveRow {
  std::string backend;
  std::string memory;  ///< "segment": the communicator's own; "host"
  std::size_t collective = 0;
  Bytes bytes = 0;
  std::vector<double> seconds;
  std::vector<double> copy_seconds;  ///< of the copy in the same run
};

/// Something that all ranks do at once, timed.
class Stopwatch {
 public:
  Stopwatch(comm::ControlGroup& control, const Options& options)
      : control_(control), clock_(make_clock(options.cpu_time)) {}

  /// Seconds of the slowest rank.
  double time(FunctionRef<void()> body) {
    control_.barrier();
    return std::ranges::max(control_.gather(time_of(*clock_, body)));
  }

 private:
  comm::ControlGroup& control_;
  std::unique_ptr<Clock> clock_;
};

/// Copies by all ranks at once, each its part of a buffer of the largest size.
class Copying {
 public:
  Copying(Bytes bytes, int ranks, StreamView stream)
      : bytes_(bytes), from_(bytes / ranks, memory_, stream), to_(bytes / ranks, memory_, stream) {
    std::ranges::fill(from_.bytes(), std::byte{0});
    std::ranges::fill(to_.bytes(), std::byte{0});
  }

  double run(Stopwatch& stopwatch) {
    return stopwatch.time([&] {
      comm::copy_bytes(from_.bytes().data(), to_.bytes().data(),
                       static_cast<Bytes>(to_.bytes().size()), comm::Writes::streamed);
    });
  }
  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  Bytes bytes_;
  HostMemory memory_;
  HostBuffer from_;
  HostBuffer to_;
};

/// What the collectives of some rows have in common.
struct MemoryKind {
  const char* name;  ///< as CollectiveRow::memory
  MemoryResource& resource;
  Bytes bytes;
};

/// Every run goes through all collectives of one size and kind of memory, and copies once.
std::vector<CollectiveRow> measure_size(const Backend& backend,
                                        const MemoryKind& memory,
                                        int runs,
                                        Stopwatch& stopwatch,
                                        Copying& copying) {
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const CollectiveBuffers buffers(backend.communicator, memory.resource, memory.bytes, stream);
  std::vector<CollectiveRow> rows;
  for (std::size_t i = 0; i < all_collectives().size(); ++i) {
    rows.push_back({backend.name, memory.name, i, memory.bytes, {}, {}});
  }
  for (int run = 0; run <= runs; ++run) {
    const double copy = copying.run(stopwatch);
    for (std::size_t i = 0; i < all_collectives().size(); ++i) {
      const double seconds = stopwatch.time([&] { buffers.run(i, stream); });
      if (run == 0) continue;  // the first warms up
      rows[i].seconds.push_back(seconds);
      rows[i].copy_seconds.push_back(copy);
    }
  }
  return rows;
}

std::vector<CollectiveRow> measure_collectives(const Options& options,
                                               std::span<const Backend> backends,
                                               Stopwatch& stopwatch,
                                               Copying& copying) {
  HostMemory host;
  std::vector<CollectiveRow> rows;
  const auto measure = [&](const Backend& backend, const MemoryKind& memory) {
    std::ranges::move(measure_size(backend, memory, options.runs, stopwatch, copying),
                      std::back_inserter(rows));
  };
  for (const Backend& backend : backends) {
    MemoryResource& own = backend.communicator.memory();
    const bool has_own = dynamic_cast<HostMemory*>(&own) == nullptr;
    for (const Bytes bytes : options.sizes) {
      if (has_own) measure(backend, {"segment", own, bytes});
      measure(backend, {"host", host, bytes});
    }
  }
  return rows;
}

/// A row beside its ceilings.
struct Rates {
  Rates(const CollectiveRow& row, Bytes copied, int ranks) : seconds(summarize(row.seconds)) {
    const auto bytes = static_cast<double>(row.bytes);
    rate = bytes / seconds.median;
    copy_rate = static_cast<double>(copied) / summarize(row.copy_seconds).median;
    of_copy = median_ratio(row.copy_seconds, row.seconds) * bytes / static_cast<double>(copied);
    of_bound = of_copy * all_collectives()[row.collective].traffic(ranks) / 2;
  }
  Summary seconds;
  double rate;       ///< bytes of `whole` per second
  double copy_rate;  ///< bytes copied per second by all ranks together, each read and written once
  double of_copy;    ///< the one as a share of the other, run by run
  double of_bound;   ///< the same of what the least traffic allows at that rate
};

std::string as_json(const Options& options,
                    const WorkerEnv& worker,
                    const Copying& copying,
                    const std::vector<CollectiveRow>& rows) {
  nlohmann::json json{
      {"bench", "comm"},      {"machine", describe_machine()}, {"world_size", worker.world_size},
      {"runs", options.runs}, {"cpu_time", options.cpu_time},  {"bytes_copied", copying.bytes()}};
  for (const CollectiveRow& row : rows) {
    const Rates rates(row, copying.bytes(), worker.world_size);
    json["results"].push_back({{"backend", row.backend},
                               {"memory", row.memory},
                               {"collective", all_collectives()[row.collective].name},
                               {"bytes", row.bytes},
                               {"seconds", to_json(rates.seconds)},
                               {"bytes_per_second", rates.rate},
                               {"copy_seconds", to_json(summarize(row.copy_seconds))},
                               {"copy_bytes_per_second", rates.copy_rate},
                               {"of_copy", rates.of_copy},
                               {"of_bound", rates.of_bound}});
  }
  return json.dump();
}

std::string as_table(const Options& options,
                     const WorkerEnv& worker,
                     const Copying& copying,
                     const std::vector<CollectiveRow>& rows) {
  std::string text = fmt::format(
      "Collectives between {} ranks: medians of {} runs, {}\n"
      "GB/s: bytes of the whole buffer; copy: copied by all ranks at once past the caches in the\n"
      "same runs, each byte read and written once; of bound: beside what the fewest bytes to read\n"
      "and write allow at that rate\n\n"
      "{:<13}{:<9}{:<25}{:>10}{:>12}{:>10}{:>8}{:>8}{:>9}{:>10}\n",
      worker.world_size, options.runs, describe_machine(), "backend", "memory", "collective",
      "bytes", "median, us", "p95, us", "GB/s", "copy", "of copy", "of bound");
  for (const CollectiveRow& row : rows) {
    const Rates rates(row, copying.bytes(), worker.world_size);
    text +=
        fmt::format("{:<13}{:<9}{:<25}{:>10}{:>12.1f}{:>10.1f}{:>8.2f}{:>8.1f}{:>9.2f}{:>10.2f}\n",
                    row.backend, row.memory, all_collectives()[row.collective].name, row.bytes,
                    rates.seconds.median * 1e6, rates.seconds.p95 * 1e6, rates.rate / 1e9,
                    rates.copy_rate / 1e9, rates.of_copy, rates.of_bound);
  }
  return text;
}

}  // namespace

std::string run_comm(const Options& options, const WorkerEnv& worker) {
  const Backends backends(options, worker);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  Copying copying(std::ranges::max(options.sizes), worker.world_size, stream);
  Stopwatch stopwatch(backends.control(), options);
  copying.run(stopwatch);  // to warm up
  const std::vector<CollectiveRow> rows =
      measure_collectives(options, backends.list(), stopwatch, copying);
  if (worker.rank != 0) return {};
  return options.json ? as_json(options, worker, copying, rows) + "\n"
                      : as_table(options, worker, copying, rows);
}

}  // namespace dstrain::bench
