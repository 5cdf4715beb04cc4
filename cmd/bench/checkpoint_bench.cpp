#include "cmd/bench/checkpoint_bench.h"

#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/bench/plain_file.h"
#include "cmd/bench/summary.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/catalog.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/pending_checkpoint.h"
#include "runtime/checkpoint/shard_writer.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::bench {
namespace {

namespace fs = std::filesystem;

const std::string parameter_name = "p";

/// A folder of its own, gone at the end.
class Workplace {
 public:
  explicit Workplace(const fs::path& directory) {
    std::string pattern = (directory / "dstrain-bench-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) fail_errno(errno, "create " + pattern);
    path_ = pattern;
  }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;
  Workplace(Workplace&&) = delete;
  Workplace& operator=(Workplace&&) = delete;
  ~Workplace() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Writes a checkpoint of one rank that holds `values`, from the directory to the last flush.
void save(const fs::path& output, std::int64_t step, HostView values) {
  checkpoint::Manifest manifest;
  manifest.step = step;
  manifest.states = {{"fp32", DType::f32, "optim_states"}};
  manifest.tensors = {{parameter_name, values.shape(), {{0, 0, values.numel()}}}};
  const std::vector<checkpoint::ShardTensor> tensors{{"fp32." + parameter_name, values}};
  checkpoint::PendingCheckpoint pending(output, step);
  manifest.files.push_back(checkpoint::write_shard(
      pending.path(), manifest.shard_path(manifest.states.front(), 0), tensors));
  pending.commit(manifest);
}

/// Seconds of each run.
struct Times {
  std::vector<double> save, write, load, read;
};

Times measure_files(const Options& options) {
  const Workplace workplace(options.directory);
  const SteadyClock clock;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  HostMemory memory;
  const HostBuffer buffer(options.bytes, memory, stream);
  const std::span<float> values = buffer.as<float>();
  std::uint32_t bits = 1;
  for (float& value : values) std::memcpy(&value, &(bits = bits * 1664525 + 1013904223), 4);
  const HostView tensor(values, {static_cast<std::int64_t>(values.size())});
  const std::span<std::byte> bytes = std::as_writable_bytes(values);
  Times times;
  // A disk may still be busy with the file that was written last: each is it in every other run.
  for (int run = 0; run <= options.runs; ++run) {
    const fs::path saved = workplace.path() / checkpoint::directory_name(run + 1);
    const fs::path plain = workplace.path() / fmt::format("plain-{}", run);  // as new as the other
    const auto in_turns = [run](auto&& one, auto&& other) {
      run % 2 == 0 ? (one(), other()) : (other(), one());
    };
    double write = 0, save_time = 0, read = 0, load = 0;
    in_turns([&] { write = time_of(clock, [&] { write_plainly(plain, bytes); }); },
             [&] { save_time = time_of(clock, [&] { save(workplace.path(), run + 1, tensor); }); });
    forget_pages(plain);
    for (const auto& file : fs::recursive_directory_iterator(saved)) {
      if (file.is_regular_file()) forget_pages(file.path());
    }
    const auto load_all = [&] {
      checkpoint::Checkpoint(saved).read("fp32", parameter_name, 0, values);
    };
    in_turns([&] { read = time_of(clock, [&] { read_plainly(plain, bytes); }); },
             [&] { load = time_of(clock, load_all); });
    fs::remove_all(saved);
    fs::remove(plain);
    if (run == 0) continue;
    times.write.push_back(write);
    times.save.push_back(save_time);
    times.read.push_back(read);
    times.load.push_back(load);
  }
  return times;
}

struct FileRow {
  const char* name;
  const std::vector<double>& seconds;
  const std::vector<double>& plain;
};

nlohmann::json as_json(const FileRow& row, Bytes bytes) {
  const Summary ours = summarize(row.seconds);
  const Summary plain = summarize(row.plain);
  return {{"name", row.name},
          {"seconds", to_json(ours)},
          {"bytes_per_second", static_cast<double>(bytes) / ours.median},
          {"plain_seconds", to_json(plain)},
          {"plain_bytes_per_second", static_cast<double>(bytes) / plain.median},
          {"of_plain", median_ratio(row.plain, row.seconds)}};
}

std::string as_line(const FileRow& row, Bytes bytes) {
  const double megabytes = static_cast<double>(bytes) / 1e6;
  return fmt::format("{:<22}{:>12.0f}{:>12.0f}{:>9.2f}\n", row.name,
                     megabytes / summarize(row.seconds).median,
                     megabytes / summarize(row.plain).median, median_ratio(row.plain, row.seconds));
}

}  // namespace

std::string run_checkpoint(const Options& options) {
  const Times times = measure_files(options);
  const std::vector<FileRow> rows{{"save", times.save, times.write},
                                  {"load", times.load, times.read}};
  if (options.json) {
    nlohmann::json json{{"bench", "checkpoint"},
                        {"machine", describe_machine()},
                        {"bytes", options.bytes},
                        {"runs", options.runs}};
    for (const FileRow& row : rows) json["results"].push_back(as_json(row, options.bytes));
    return json.dump() + "\n";
  }
  std::string text = fmt::format(
      "A rank's shard of {} in {}: MB/s, medians of {} runs, {}\n\n{:<22}{:>12}{:>12}{:>9}\n",
      format_bytes(options.bytes), options.directory, options.runs, describe_machine(), "",
      "checkpoint", "plain file", "ratio");
  for (const FileRow& row : rows) text += as_line(row, options.bytes);
  return text;
}

}  // namespace dstrain::bench
