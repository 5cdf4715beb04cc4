#include "cmd/bench/io_bench.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/bench/fio.h"
#include "cmd/bench/summary.h"
#include "offload/make_file_io.h"
#include "offload/storage.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::bench {
namespace {

constexpr std::array traffics{Traffic::read, Traffic::write, Traffic::mixed};
constexpr std::array traffic_names{"read", "write", "mixed"};

const char* name_of(Traffic traffic) {
  return traffic_names.at(static_cast<std::size_t>(traffic));
}

/// One setting with one traffic; seconds of each run.
struct TrafficRow {
  FileTraffic what;
  std::vector<double> ours;
  std::vector<double> fio;  ///< empty without it
};

struct Results {
  std::string engine;
  std::string fallback;
  bool direct = false;
  std::string warning;
  std::vector<TrafficRow> rows;  ///< the traffics of a setting follow each other
};

/// Every second block is read, the others are written: as the states of an optimizer are.
void transfer(offload::AsyncFileIo& io,
              offload::SwapFile& file,
              std::span<std::byte> memory,
              const FileTraffic& what) {
  std::vector<offload::Ticket> tickets;
  const auto piece =
      static_cast<std::size_t>(what.traffic == Traffic::mixed ? what.block_size : what.bytes);
  bool reads = what.traffic != Traffic::write;
  for (std::size_t at = 0; at < memory.size(); at += piece) {
    const auto part = memory.subspan(at, std::min(piece, memory.size() - at));
    const auto offset = static_cast<Bytes>(at);
    tickets.push_back(reads ? io.read(file, offset, part) : io.write(file, offset, part));
    if (what.traffic == Traffic::mixed) reads = !reads;
  }
  for (const offload::Ticket ticket : tickets) io.wait(ticket);
}

class Bench {
 public:
  Bench(const Options& options, IoKind kind)
      : options_(options),
        kind_(kind),
        file_(options.directory, options.bytes),
        buffer_(options.bytes, memory_, stream_),
        with_fio_(have_fio()) {
    std::uint64_t bits = 1;
    for (std::uint64_t& word : buffer_.as<std::uint64_t>()) {
      word = bits = bits * 6364136223846793005U + 1442695040888963407U;
    }
  }

  Results run() {
    Results results;
    results.direct = file_.direct();
    results.warning = offload::storage_warning(offload::storage_kind(options_.directory));
    for (const Bytes block_size : options_.block_sizes) {
      for (const int queue_depth : options_.queue_depths) {
        for (const int threads : options_.io_threads) {
          measure({Traffic::read, options_.bytes, block_size, queue_depth, threads}, results);
        }
      }
    }
    return results;
  }

 private:
  void measure(FileTraffic what, Results& results) {
    const offload::MadeFileIo made = offload::make_file_io(
        {.block_size = what.block_size, .queue_depth = what.queue_depth, .threads = what.threads},
        kind_);
    results.engine = made.io->name();
    results.fallback = made.fallback;
    made.io->register_memory(buffer_.bytes());
    what.traffic = Traffic::write;  // fio may have written there, and first writes are slower
    transfer(*made.io, file_, buffer_.bytes(), what);
    for (const Traffic traffic : traffics) {
      what.traffic = traffic;
      results.rows.push_back(time_traffic(*made.io, what));
    }
  }

  TrafficRow time_traffic(offload::AsyncFileIo& io, const FileTraffic& what) {
    TrafficRow row{what, {}, {}};
    for (int run = 0; run <= options_.runs; ++run) {
      const double ours = time_of(clock_, [&] { transfer(io, file_, buffer_.bytes(), what); });
      if (run == 0) continue;
      row.ours.push_back(ours);
      if (!with_fio_) continue;
      const std::optional<double> fio = time_of_fio(file_.fd(), what);
      if (what.traffic != Traffic::read) write_again(io, what);
      if (fio) row.fio.push_back(fio.value());
    }
    if (row.fio.size() != row.ours.size()) row.fio.clear();
    return row;
  }

  /// What fio has written is not what we wrote there.
  void write_again(offload::AsyncFileIo& io, FileTraffic what) {
    what.traffic = Traffic::write;
    transfer(io, file_, buffer_.bytes(), what);
  }

  const Options& options_;
  IoKind kind_;
  SteadyClock clock_;
  HostMemory memory_;
  CpuStream stream_{CpuStream::Mode::inline_on_caller};
  offload::SwapFile file_;
  HostBuffer buffer_;
  bool with_fio_;
};

/// The setting that reads, writes and does both in the least time.
const FileTraffic& best_of(const std::vector<TrafficRow>& rows) {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t at = 0; at < rows.size(); at += traffics.size()) {
    double sum = 0;
    for (std::size_t i = 0; i < traffics.size(); ++i) sum += summarize(rows[at + i].ours).median;
    if (sum < least) best = at;
    least = std::min(least, sum);
  }
  return rows[best].what;
}

nlohmann::ordered_json aio_section(const FileTraffic& best) {
  return {{"block_size", best.block_size},
          {"queue_depth", best.queue_depth},
          {"intra_op_parallelism", best.threads},
          {"single_submit", false},
          {"overlap_events", true}};
}

std::string as_json(const Options& options, const Results& results) {
  nlohmann::json json{{"bench", "io"},
                      {"machine", describe_machine()},
                      {"path", options.directory},
                      {"bytes", options.bytes},
                      {"runs", options.runs},
                      {"engine", results.engine},
                      {"direct", results.direct},
                      {"aio", aio_section(best_of(results.rows))}};
  for (const TrafficRow& row : results.rows) {
    const Summary ours = summarize(row.ours);
    nlohmann::json entry{{"traffic", name_of(row.what.traffic)},
                         {"block_size", row.what.block_size},
                         {"queue_depth", row.what.queue_depth},
                         {"threads", row.what.threads},
                         {"seconds", to_json(ours)},
                         {"bytes_per_second", static_cast<double>(options.bytes) / ours.median}};
    if (!row.fio.empty()) {
      const Summary fio = summarize(row.fio);
      entry["fio_seconds"] = to_json(fio);
      entry["fio_bytes_per_second"] = static_cast<double>(options.bytes) / fio.median;
      entry["of_fio"] = median_ratio(row.fio, row.ours);
    }
    json["results"].push_back(entry);
  }
  return json.dump() + "\n";
}

std::string as_line(const TrafficRow& row) {
  const double megabytes = static_cast<double>(row.what.bytes) / 1e6;
  std::string line = fmt::format("{:<10}{:>12}{:>8}{:>10}{:>12.0f}", name_of(row.what.traffic),
                                 format_bytes(row.what.block_size), row.what.queue_depth,
                                 row.what.threads, megabytes / summarize(row.ours).median);
  if (row.fio.empty()) return line + fmt::format("{:>12}{:>9}\n", "-", "-");
  return line + fmt::format("{:>12.0f}{:>9.2f}\n", megabytes / summarize(row.fio).median,
                            median_ratio(row.fio, row.ours));
}

std::string as_table(const Options& options, const Results& results) {
  std::string text = fmt::format(
      "A swap file of {} in {}: MB/s, checksums included, medians of {} runs,\n{}{}, {}\n",
      format_bytes(options.bytes), options.directory, options.runs, results.engine,
      results.direct ? "" : " through the page cache", describe_machine());
  if (!results.fallback.empty()) text += results.fallback + "\n";
  if (!results.warning.empty()) {
    text += fmt::format("warning: {} {}\n", options.directory, results.warning);
  }
  text += fmt::format("\n{:<10}{:>12}{:>8}{:>10}{:>12}{:>12}{:>9}\n", "", "block", "depth",
                      "threads", "dstrain", "fio", "ratio");
  for (const TrafficRow& row : results.rows) text += as_line(row);
  return text + fmt::format("\nThe fastest, for ds_config.json:\n\"aio\": {}\n",
                            aio_section(best_of(results.rows)).dump(2));
}

}  // namespace

std::string run_io(const Options& options, IoKind kind) {
  const Results results = Bench(options, kind).run();
  return options.json ? as_json(options, results) : as_table(options, results);
}

}  // namespace dstrain::bench
