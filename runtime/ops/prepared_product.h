#pragma once
#include <compare>
#include <cstdint>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>

#include "runtime/tensor/dtype.h"

namespace dstrain::ops {

enum class RightLayout : std::uint8_t { plain, transposed, panels };

/// The key of a product of dense operands of one dtype, as oneDNN runs it.
struct ProductKey {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  DType compute;  ///< of a and b
  DType out;
  bool a_transposed;
  RightLayout b;
  bool bias;  ///< f32
  bool accumulate;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang takes the 0 that <=> is compared with for one
  friend auto operator<=>(const ProductKey&, const ProductKey&) = default;
};

struct ProductAddresses {
  std::byte* a;
  std::byte* b;
  std::byte* bias;  ///< null if there is none
  std::byte* out;
};

/// Memory that all products use in turn. It grows to the largest need: about a megabyte per thread.
class Scratchpad {
 public:
  void lend(dnnl::memory& user);

 private:
  dnnl::memory memory_;
};

/// A prepared oneDNN primitive, and memory objects whose addresses each call sets.
class PreparedProduct {
 public:
  PreparedProduct(const ProductKey& key, const dnnl::engine& engine);
  void run(const ProductAddresses& addresses, const dnnl::stream& stream, Scratchpad& scratchpad);
  /// Whether oneDNN reads right operands of `dtype` as panels here: on AVX-512.
  static bool reads_panels(DType dtype, const dnnl::engine& engine);

 private:
  PreparedProduct(const ProductKey& key,
                  const dnnl::engine& engine,
                  const dnnl::matmul::primitive_desc& description);

  dnnl::matmul product_;
  dnnl::memory a_;
  dnnl::memory b_;
  dnnl::memory out_;
  dnnl::memory bias_;
  dnnl::memory scratchpad_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

}  // namespace dstrain::ops
