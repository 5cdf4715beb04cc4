#include "cmd/bench/adam_bench.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/bench/move_loop.h"
#include "cmd/bench/summary.h"
#include "runtime/base/error.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/ops/update.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::bench {
namespace {

/// The tensors of one step. Filled by the compute threads in the chunks of the step, so that each
/// touches first what it works on later.
class Tensors {
 public:
  Tensors(std::int64_t numel, StreamView stream) {
    for (HostBuffer& buffer : floats_) {
      buffer = HostBuffer(numel * Bytes{sizeof(float)}, memory_, stream);
    }
    working_ = HostBuffer(numel * Bytes{sizeof(BFloat16)}, memory_, stream);
    move_like_adamw(arrays(true));
    constexpr std::array<float, 4> values{0.5F, 0.01F, 0.01F, 0.0001F};
    for (std::size_t i = 0; i < floats_.size(); ++i) {
      std::ranges::fill(floats_[i].as<float>(), values[i]);
    }
  }

  [[nodiscard]] UpdatedArrays arrays(bool with_working) const {
    return {.parameters = floats_[0].as<float>(),
            .gradients = floats_[1].as<float>(),
            .exp_avg = floats_[2].as<float>(),
            .exp_avg_sq = floats_[3].as<float>(),
            .working = with_working ? working_.as<BFloat16>() : std::span<BFloat16>()};
  }
  [[nodiscard]] ops::UpdateArgs args(rules::ScalarValues& scalars, bool with_working) const {
    const auto view = [this](std::size_t i) {
      return floats_.at(i).block().cut(0, DType::f32, {std::ssize(floats_.at(i).as<float>())});
    };
    ops::UpdateArgs args{.parameters = view(0),
                         .gradients = view(1),
                         .states = {view(2), view(3)},
                         .scalars = ops::view_of(scalars)};
    const Shape shape = args.parameters.shape();
    if (with_working) args.working = working_.block().cut(0, DType::bf16, shape);
    return args;
  }

 private:
  HostMemory memory_;
  std::array<HostBuffer, 4> floats_;
  HostBuffer working_;
};

/// One of two rows: with the working copy or without.
struct AdamRow {
  const char* name;
  bool with_working;
  Bytes bytes_per_parameter;
  std::vector<double> step;
  std::vector<double> move;
};

std::vector<AdamRow> measure_adam(const Options& options) {
  if (options.cpu_time && compute_threads() > 1) {
    fail(ErrorCode::usage, "bench adam: --cpu_time counts one thread: set OMP_NUM_THREADS=1");
  }
  const std::unique_ptr<Clock> clock = make_clock(options.cpu_time);
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  const Tensors updated(options.numel, stream);
  const Tensors moved(options.numel, stream);
  rules::ScalarValues scalars =
      rules::scalars(rules::Adam::Settings{.weight_decay = 0.1}, {10, 1e-3});
  std::vector<AdamRow> rows{{"fp32", false, 28, {}, {}}, {"fp32 with bf16 copy", true, 30, {}, {}}};
  for (int run = 0; run <= options.runs; ++run) {
    for (AdamRow& row : rows) {
      const double step =
          time_of(*clock, [&] { ops::update(updated.args(scalars, row.with_working), stream); });
      const double move = time_of(*clock, [&] { move_like_adamw(moved.arrays(row.with_working)); });
      if (run == 0) continue;
      row.step.push_back(step);
      row.move.push_back(move);
    }
  }
  return rows;
}

std::string as_json(const Options& options, const std::vector<AdamRow>& rows) {
  nlohmann::json json{
      {"bench", "adam"},        {"machine", describe_machine()}, {"threads", compute_threads()},
      {"numel", options.numel}, {"runs", options.runs},          {"cpu_time", options.cpu_time}};
  for (const AdamRow& row : rows) {
    const Summary step = summarize(row.step);
    const Summary move = summarize(row.move);
    const auto bytes = static_cast<double>(row.bytes_per_parameter * options.numel);
    json["results"].push_back({{"name", row.name},
                               {"bytes_per_parameter", row.bytes_per_parameter},
                               {"seconds", to_json(step)},
                               {"bytes_per_second", bytes / step.median},
                               {"move_seconds", to_json(move)},
                               {"move_bytes_per_second", bytes / move.median},
                               {"of_move", median_ratio(row.move, row.step)}});
  }
  return json.dump();
}

std::string as_table(const Options& options, const std::vector<AdamRow>& rows) {
  std::string text = fmt::format(
      "AdamW over {} parameters beside a loop that moves the same bytes: medians of {} runs,\n"
      "{} threads, {}\n\n{:<22}{:>10}{:>12}{:>9}{:>12}{:>9}{:>9}\n",
      options.numel, options.runs, compute_threads(), describe_machine(), "", "bytes per", "", "",
      "moving", "", "");
  text += fmt::format("{:<22}{:>10}{:>12}{:>9}{:>12}{:>9}{:>9}\n", "states", "parameter",
                      "step, ms", "GB/s", "them, ms", "GB/s", "ratio");
  for (const AdamRow& row : rows) {
    const double step = summarize(row.step).median;
    const double move = summarize(row.move).median;
    const double gigabytes = static_cast<double>(row.bytes_per_parameter * options.numel) / 1e9;
    text += fmt::format("{:<22}{:>10}{:>12.3f}{:>9.1f}{:>12.3f}{:>9.1f}{:>9.2f}\n", row.name,
                        row.bytes_per_parameter, step * 1e3, gigabytes / step, move * 1e3,
                        gigabytes / move, median_ratio(row.move, row.step));
  }
  return text;
}

}  // namespace

std::string run_adam(const Options& options) {
  const std::vector<AdamRow> rows = measure_adam(options);
  return options.json ? as_json(options, rows) + "\n" : as_table(options, rows);
}

}  // namespace dstrain::bench
