#include "runtime/ops/cuda/product_tuning.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <vector>

#include "runtime/ops/cuda/copies.h"
#include "runtime/ops/cuda/op_state.h"
#include "runtime/ops/cuda/product_choices.h"
#include "runtime/tensor/buffer.h"

namespace dstrain::ops::gpu {
namespace {

constexpr int algorithms_most = 16;    ///< tried per product
constexpr std::size_t times_each = 5;  ///< measurements per algorithm; the median counts
constexpr int runs_each = 3;           ///< runs per measurement
constexpr Bytes alignment_most = 256;  ///< alignment of memory before it is offset

/// The memory of a product: its operands, then the workspace.
struct Extents {
  explicit Extents(const ProductKey& key)
      : a((key.a_transposed ? key.k : key.m) * key.a_stride * size_of(key.operands)),
        b((key.b_transposed ? key.n : key.k) * key.b_stride * size_of(key.operands)),
        out(key.m * key.out_stride * size_of(key.out)),
        bias(key.bias ? key.n * size_of(key.out) : 0) {}
  [[nodiscard]] Bytes operands() const {
    return padded(a) + padded(b) + padded(out) + padded(bias);
  }
  [[nodiscard]] Bytes all() const {
    return operands() + static_cast<Bytes>(ProductPlan::workspace_bytes) + alignment_most;
  }
  /// With room for an address that is aligned no better than the product's own.
  static Bytes padded(Bytes bytes) {
    return divide_up(bytes, alignment_most) * alignment_most + alignment_most;
  }
  Bytes a;
  Bytes b;
  Bytes out;
  Bytes bias;
};

/// Returns the product of a key with operands in `memory`, each aligned exactly as the key says.
/// Without memory it only describes the product to cuBLASLt and cannot run.
Product product_of(const ProductKey& key, std::byte* memory) {
  const Extents extents(key);
  const auto take = [&](Bytes bytes, std::uint32_t alignment) -> std::byte* {
    if (memory == nullptr) return nullptr;
    std::byte* const begin = memory + (alignment < alignment_most ? alignment : 0);
    memory += Extents::padded(bytes);
    return begin;
  };
  return {.op = "tune_matmuls",
          .a = {take(extents.a, key.a_alignment), key.operands, key.a_stride},
          .b = {take(extents.b, key.b_alignment), key.operands, key.b_stride},
          .out = {take(extents.out, key.out_alignment), key.out, key.out_stride},
          .shape = {key.m, key.n, key.k},
          .bias = key.bias ? take(extents.bias, alignment_most) : nullptr,
          .a_transposed = key.a_transposed,
          .b_transposed = key.b_transposed,
          .accumulate = key.accumulate,
          .tf32 = key.tf32};
}

/// Numbers of either sign between 2^-7 and 2 in each of the types. Zeros would take less power, and
/// so less time, than training data.
std::vector<std::uint32_t> noise() {
  constexpr std::size_t words = 16384;
  std::vector<std::uint32_t> values(words);
  std::uint32_t state = 1;
  for (std::uint32_t& value : values) {
    state = state * 1664525 + 1013904223;
    value = (state & 0x83FF83FF) | 0x3C003C00;
  }
  return values;
}

/// Times products one after another, in a buffer that grows as needed.
class Tuner {
 public:
  Tuner(StreamView view, MemoryResource& memory)
      : view_(view), stream_(cuda::cuda_stream(view)), memory_(memory) {
    for (auto& event : events_) {
      cudaEvent_t raw = nullptr;
      DSTRAIN_CUDA_CHECK(cudaEventCreateWithFlags(&raw, 0), "GPU {}", stream_.ordinal());
      event = UniqueHandle<cuda::EventTraits>(raw);
    }
  }

  /// Whether there is memory for the product.
  bool reserve(const Extents& extents) {
    if (scratch_.block().bytes() >= extents.all()) return true;
    scratch_ = Buffer();
    try {
      scratch_ = Buffer(extents.all(), memory_, view_);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_device_memory) throw;
      return false;
    }
    fill();
    return true;
  }

  /// Returns nothing if no algorithm runs. Even an accepted proposal may fail when it runs.
  std::optional<cublasLtMatmulAlgo_t> fastest(cublasLtHandle_t handle, const ProductKey& key) {
    auto* const memory = elements<std::byte>(scratch_.block());
    const Product product = product_of(key, memory);
    ProductPlan plan(handle, product);
    const auto run = [&] {
      plan.run(handle, product, memory + Extents(key).operands(), stream_.handle());
    };
    std::optional<cublasLtMatmulAlgo_t> best;
    float least = std::numeric_limits<float>::infinity();
    for (const cublasLtMatmulAlgo_t& one : plan.propose(handle, product, algorithms_most)) {
      if (!plan.take(handle, product, one)) continue;
      const std::optional<float> time = time_of(run);
      if (!time || *time >= least) continue;
      best = one;
      least = *time;
    }
    return best;
  }

 private:
  void fill() {
    const std::vector<std::uint32_t> values = noise();
    auto* const memory = elements<std::byte>(scratch_.block());
    const Bytes all = scratch_.block().bytes();
    const Bytes own = std::ssize(values) * Bytes{sizeof(values.front())};
    copy_bytes("tune_matmuls", values.data(), memory, std::min(own, all), view_);
    for (Bytes done = own; done < all; done *= 2) {
      copy_bytes("tune_matmuls", memory, memory + done, std::min(done, all - done), view_);
    }
    stream_.synchronize();
  }

  /// Returns nothing if the run fails and the GPU is still usable.
  template <class Run>
  std::optional<float> time_of(const Run& run) {
    try {
      run();  // not timed: a first run also loads the kernel
    } catch (const Error&) {
      stream_.synchronize();
      return std::nullopt;
    }
    return median_ms(run);
  }

  /// Times several consecutive runs, so that launches overlap with work.
  template <class Run>
  float median_ms(const Run& run) {
    std::array<float, times_each> times{};
    for (float& time : times) {
      run();
      record(0);
      for (int i = 0; i < runs_each; ++i) run();
      record(1);
      DSTRAIN_CUDA_CHECK(cudaEventSynchronize(events_[1].get()), "GPU {}", stream_.ordinal());
      DSTRAIN_CUDA_CHECK(cudaEventElapsedTime(&time, events_[0].get(), events_[1].get()), "GPU {}",
                         stream_.ordinal());
    }
    std::ranges::sort(times);
    return times[times_each / 2];
  }

  void record(std::size_t event) {
    DSTRAIN_CUDA_CHECK(cudaEventRecord(events_.at(event).get(), stream_.handle()), "GPU {}",
                       stream_.ordinal());
  }

  StreamView view_;
  cuda::CudaStream& stream_;
  MemoryResource& memory_;
  std::array<UniqueHandle<cuda::EventTraits>, 2> events_;
  Buffer scratch_;
};

}  // namespace

std::string tune_products(StreamView stream, MemoryResource& memory, Bytes room) {
  stream.synchronize();
  OpState& state = op_state(stream);
  Tuner tuner(stream, memory);
  ProductAlgorithms fastest;
  for (const auto& [key, plan] : state.plans().by_key) {
    const Extents extents(key);
    if (extents.all() > room || !tuner.reserve(extents)) continue;
    if (const auto algorithm = tuner.fastest(state.cublas(), key)) fastest.emplace(key, *algorithm);
  }
  return to_text(fastest, choice_place(cuda::cuda_stream(stream).ordinal()));
}

std::string use_algorithms(const std::string& text, StreamView stream) {
  const Result<ProductAlgorithms> read =
      read_algorithms(text, choice_place(cuda::cuda_stream(stream).ordinal()));
  if (!read.ok()) return read.error();
  OpState& state = op_state(stream);
  ProductPlans& plans = state.plans();
  plans.chosen = read.value();
  for (auto& [key, plan] : plans.by_key) {
    const auto chosen = plans.chosen.find(key);
    if (chosen == plans.chosen.end()) continue;
    plan.take(state.cublas(), product_of(key, nullptr), chosen->second);
  }
  return "";
}

ProductCount count_products(StreamView stream) {
  const auto& plans = op_state(stream).plans().by_key;
  const auto chosen =
      std::ranges::count_if(plans, [](const auto& at) { return at.second.chosen(); });
  return {.all = std::ssize(plans), .chosen = chosen};
}

}  // namespace dstrain::ops::gpu
