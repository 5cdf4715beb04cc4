#include "cmd/bench/gemm_bench.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cmd/bench/gemm_shapes.h"
#include "cmd/bench/peak_loops.h"
#include "cmd/bench/summary.h"
#include "runtime/device/cpu_stream.h"
#include "runtime/numeric/parallel_for.h"
#include "runtime/numeric/philox.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::bench {
namespace {

constexpr std::array<DType, 2> dtypes{DType::f32, DType::bf16};
constexpr std::array<const char*, 2> dtype_names{"fp32", "bf16"};

/// A product with memory of its own: between two runs of one, the others pass through the caches,
/// as in a step.
class Product {
 public:
  Product(const GemmShape& shape, DType dtype, MemoryResource& memory, StreamView stream)
      : args_(product_of(shape, dtype)) {
    for (TensorView* const view : {&args_.a, &args_.b, &args_.out, &args_.bias}) {
      if (view->shape().rank() == 0) continue;
      const HostView values =
          take(view->bytes(), memory, stream).cut(0, view->dtype(), view->shape());
      fill(values);
      *view = values;
    }
    args_.workspace = take(ops::matmul_workspace(args_, stream.device().kind), memory, stream);
  }

  void run(StreamView stream) const { ops::matmul(args_, stream); }

 private:
  HostView take(Bytes bytes, MemoryResource& memory, StreamView stream) {
    return buffers_.emplace_back(bytes, memory, stream).block();
  }

  /// Numbers from -0.5 to 0.5.
  static void fill(const HostView& view) {
    constexpr std::int64_t chunk = 1 << 16;
    parallel_for((view.numel() + chunk - 1) / chunk, [&](std::int64_t part) {
      const std::int64_t end = std::min(view.numel(), (part + 1) * chunk);
      std::uint32_t word = philox({.seed = 1, .index = static_cast<std::uint64_t>(part)})[0];
      for (std::int64_t i = part * chunk; i < end; ++i) {
        word = word * 1664525U + 1013904223U;  // Knuth's: any numbers will do
        const float value = static_cast<float>(word >> 8) * 0x1.0p-24F - 0.5F;
        const auto at = static_cast<std::size_t>(i);
        view.dtype() == DType::f32 ? void(view.as<float>()[at] = value)
                                   : void(view.as<BFloat16>()[at] = to_bfloat16(value));
      }
    });
  }

  ops::MatmulArgs args_;
  std::vector<HostBuffer> buffers_;
};

/// Times of one shape, by dtype.
struct Measured {
  GemmShape shape;
  std::array<std::vector<double>, 2> seconds;
};

/// Operations per second of the peak loops: of their fastest run, for nothing can be faster.
struct Peaks {
  double fma = 0;
  double dot = 0;  ///< of bf16; 0 where the processor has none
};

double rate_of(const Clock& clock, double (*loop)(std::int64_t)) {
  constexpr std::int64_t rounds = 2'000'000;  // some milliseconds
  double flops = 0;
  const double seconds = time_of(clock, [&] { flops = loop(rounds); });
  return flops / seconds;
}

struct Products {
  std::vector<Measured> shapes;
  Peaks peaks;
};

Products measure_products(const Options& options) {
  const SteadyClock clock;
  CpuStream stream(CpuStream::Mode::inline_on_caller);
  HostMemory memory;
  Products result;
  std::vector<std::array<Product, 2>> products;
  for (GemmShape& shape : gemm_shapes(options.model->make(), options.sequences * options.tokens)) {
    products.push_back(
        {Product(shape, dtypes[0], memory, stream), Product(shape, dtypes[1], memory, stream)});
    result.shapes.push_back({std::move(shape), {}});
  }
  const auto time = [&](Product& product) {
    return time_of(clock, [&] { product.run(stream); });
  };
  for (int run = 0; run <= options.runs; ++run) {
    const bool timed = run > 0;  // the first prepares the products
    Peaks& peaks = result.peaks;
    peaks.fma = std::max(peaks.fma, rate_of(clock, fma_peak_flops));
    if (has_bf16_dot_products()) {
      peaks.dot = std::max(peaks.dot, rate_of(clock, bf16_peak_flops));
    }
    for (std::size_t dtype = 0; dtype < dtypes.size(); ++dtype) {
      for (std::size_t i = 0; i < products.size(); ++i) {
        const double seconds = time(products[i][dtype]);
        if (timed) result.shapes[i].seconds[dtype].push_back(seconds);
      }
    }
  }
  return result;
}

/// All products of a step at their median times.
struct Step {
  double flops = 0;
  std::array<double, 2> seconds{};
};

Step add_up(const Products& result) {
  Step step;
  for (const Measured& measured : result.shapes) {
    step.flops += measured.shape.flops() * measured.shape.times;
    for (std::size_t dtype = 0; dtype < dtypes.size(); ++dtype) {
      step.seconds[dtype] += summarize(measured.seconds[dtype]).median * measured.shape.times;
    }
  }
  return step;
}

std::string as_json(const Options& options, const Products& result) {
  nlohmann::json json{{"bench", "gemm"},
                      {"machine", describe_machine()},
                      {"threads", compute_threads()},
                      {"model", options.model_name},
                      {"sequences", options.sequences},
                      {"tokens", options.tokens},
                      {"runs", options.runs}};
  json["peak_flops"]["fma"] = result.peaks.fma;
  if (result.peaks.dot > 0) json["peak_flops"]["bf16_dot_product"] = result.peaks.dot;
  for (const Measured& measured : result.shapes) {
    const GemmShape& shape = measured.shape;
    nlohmann::json row{{"name", shape.name},
                       {"m", shape.m},
                       {"n", shape.n},
                       {"k", shape.k},
                       {"times", shape.times}};
    for (std::size_t dtype = 0; dtype < dtypes.size(); ++dtype) {
      const Summary seconds = summarize(measured.seconds[dtype]);
      row[dtype_names[dtype]] = {{"seconds", to_json(seconds)},
                                 {"flops", shape.flops() / seconds.median}};
    }
    json["products"].push_back(row);
  }
  const Step step = add_up(result);
  json["step"]["flop"] = step.flops;
  for (std::size_t dtype = 0; dtype < dtypes.size(); ++dtype) {
    json["step"][dtype_names[dtype]] = {{"seconds", step.seconds[dtype]},
                                        {"flops", step.flops / step.seconds[dtype]}};
  }
  return json.dump();
}

std::string as_table(const Options& options, const Products& result) {
  const double fma = result.peaks.fma;
  std::string text = fmt::format(
      "Matrix products of a training step of {}, {} x {} tokens: GFLOP/s, medians of {} runs,\n"
      "{} threads, {}\n"
      "peak loops, fastest run: f32 multiply-adds {:.0f}, bf16 dot products {}\n\n"
      "{:<20}{:>7}{:>7}{:>7}{:>7}{:>9}{:>9}{:>9}{:>9}\n",
      options.model_name, options.sequences, options.tokens, options.runs, compute_threads(),
      describe_machine(), fma / 1e9,
      result.peaks.dot > 0 ? fmt::format("{:.0f}", result.peaks.dot / 1e9) : "none", "product", "M",
      "N", "K", "times", "fp32", "of FMA", "bf16", "of FMA");
  const auto rates = [&](double fp32, double bf16) {
    return fmt::format("{:>9.0f}{:>9.2f}{:>9.0f}{:>9.2f}\n", fp32 / 1e9, fp32 / fma, bf16 / 1e9,
                       bf16 / fma);
  };
  for (const auto& [shape, seconds] : result.shapes) {
    text += fmt::format("{:<20}{:>7}{:>7}{:>7}{:>7.4g}", shape.name, shape.m, shape.n, shape.k,
                        shape.times);
    text += rates(shape.flops() / summarize(seconds[0]).median,
                  shape.flops() / summarize(seconds[1]).median);
  }
  const Step step = add_up(result);
  text += fmt::format("{:<48}", "all, as often as in a step: the ceiling of a step");
  text += rates(step.flops / step.seconds[0], step.flops / step.seconds[1]);
  return text;
}

}  // namespace

std::string run_gemm(const Options& options) {
  const Products result = measure_products(options);
  return options.json ? as_json(options, result) + "\n" : as_table(options, result);
}

}  // namespace dstrain::bench
