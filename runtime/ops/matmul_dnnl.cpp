#include <algorithm>
#include <list>
#include <map>

#include "runtime/device/cpu_stream_access.h"
#include "runtime/ops/convert_kernel.h"
#include "runtime/ops/cpu_ops.h"
#include "runtime/ops/few_rows.h"
#include "runtime/ops/matmul.h"
#include "runtime/ops/matmul_plan.h"
#include "runtime/ops/panels.h"
#include "runtime/ops/prepared_product.h"
#include "runtime/ops/tile_bf16.h"
#include "runtime/tensor/host_access.h"

namespace dstrain::ops::cpu {

Bf16Products preferred_bf16_products() {
  const auto effective = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  const auto has = [effective](dnnl::cpu_isa isa) {
    return (effective & static_cast<unsigned>(isa)) == static_cast<unsigned>(isa);
  };
  const bool pays = has(dnnl::cpu_isa::avx512_core_amx) ||
                    (has(dnnl::cpu_isa::avx512_core_bf16) && __builtin_cpu_is("amd"));
  return pays ? Bf16Products::native : Bf16Products::widened;
}

namespace {

/// The data that a stream keeps for its products.
struct Products final : CpuStream::Kept {
  struct Prepared {
    Prepared(const ProductKey& shape, const dnnl::engine& engine)
        : key(shape), product(shape, engine) {}
    ProductKey key;
    PreparedProduct product;
  };

  PreparedProduct& product(const ProductKey& key) {
    const auto found = places.find(key);
    if (found != places.end()) {
      prepared.splice(prepared.begin(), prepared, found->second);
      return found->second->product;
    }
    prepared.emplace_front(key, engine);
    places.emplace(key, prepared.begin());
    if (prepared.size() > prepared_products_max) {
      places.erase(prepared.back().key);
      prepared.pop_back();
    }
    return prepared.front().product;
  }

  Bf16Products bf16_products = preferred_bf16_products();
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  bool reads_panels = PreparedProduct::reads_panels(DType::f32, engine);
  std::list<Prepared> prepared;  ///< most recently used first
  std::map<ProductKey, std::list<Prepared>::iterator> places;
  Scratchpad scratchpad;
  PackedRows packed_rows;
};

bool has_few_rows(const MatmulArgs& args) {
  return args.out.shape()[0] <= few_rows_max && !args.a_transposed && !args.accumulate;
}

/// Reads b once, where it is.
void run_few_rows(Products& kept, const MatmulArgs& args) {
  const bool pairs = args.a.dtype() == DType::bf16 && args.b.dtype() == DType::bf16;
  const bool native = kept.bf16_products == Bf16Products::native;
  multiply_few_rows({.a = host_access(args.a),
                     .b = host_access(args.b),
                     .out = host_access(args.out),
                     .bias = host_access(args.bias),
                     .b_transposed = args.b_transposed,
                     .dots = pairs && native && bf16_unit() == Bf16Unit::dot},
                    kept.packed_rows);
}

/// One product, cut as planned.
class Run {
 public:
  Run(Products& kept, const MatmulArgs& args)
      : kept_(kept),
        args_(args),
        shape_(matmul_shape(args)),
        compute_(matmul_compute(args, kept.bf16_products)),
        plan_(plan_matmul(args, compute_)) {
    panels_ = host_access(args.workspace).data();
    a_rows_ = panels_ + plan_.panels;
    out_rows_ = a_rows_ + plan_.a_rows;
    bias_ = out_rows_ + plan_.out_rows;
  }

  void run() {
    const HostView a = host_access(args_.a);
    const HostView b = host_access(args_.b);
    if (plan_.bias > 0) convert_values(host_access(args_.bias), {bias_, DType::f32, {shape_.n}});
    for (std::int64_t begin = 0; begin < shape_.k; begin += plan_.k_piece) {
      const std::int64_t count = std::min(plan_.k_piece, shape_.k - begin);
      const bool whole = count == shape_.k;
      prepare_b(whole ? b : b.rows(begin, count));
      run_rows(whole ? a : a.rows(begin, count), begin == 0);
    }
  }

 private:
  void prepare_b(const HostView& b) {
    if (plan_.panels == 0 || (!kept_.reads_panels && b.dtype() == compute_)) {
      b_ = b.data();
      b_layout_ = args_.b_transposed ? RightLayout::transposed : RightLayout::plain;
      return;
    }
    b_ = panels_;
    b_layout_ = kept_.reads_panels ? RightLayout::panels : RightLayout::plain;
    const StoredMatrix stored{b, args_.b_transposed};
    if (kept_.reads_panels) {
      pack_panels(stored, compute_, panels_);
    } else {
      convert_rows(stored, {0, b.shape()[args_.b_transposed ? 1 : 0]}, compute_, panels_);
    }
  }

  void run_rows(const HostView& a, bool first) {
    const std::int64_t k = a.shape()[args_.a_transposed ? 0 : 1];
    for (std::int64_t begin = 0; begin < shape_.m; begin += plan_.m_piece) {
      const std::int64_t count = std::min(plan_.m_piece, shape_.m - begin);
      const bool converted = plan_.a_rows > 0;
      if (converted) convert_rows({a, args_.a_transposed}, {begin, count}, compute_, a_rows_);
      const HostView out = host_access(args_.out).rows(begin, count);
      const bool rounded = plan_.out_rows > 0;
      const bool bias = first && !args_.bias.empty();
      kept_
          .product({.m = count,
                    .n = shape_.n,
                    .k = k,
                    .compute = compute_,
                    .out = rounded ? DType::f32 : out.dtype(),
                    .a_transposed = args_.a_transposed && !converted,
                    .b = b_layout_,
                    .bias = bias,
                    .accumulate = args_.accumulate || !first})
          .run({.a = converted ? a_rows_ : a.data() + begin * k * size_of(a.dtype()),
                .b = b_,
                .bias = !bias ? nullptr : (plan_.bias > 0 ? bias_ : host_access(args_.bias).data()),
                .out = rounded ? out_rows_ : out.data()},
               kept_.stream, kept_.scratchpad);
      if (rounded) convert_values({out_rows_, DType::f32, out.shape()}, out);
    }
  }

  Products& kept_;
  const MatmulArgs& args_;
  MatmulShape shape_;
  DType compute_;
  MatmulPlan plan_;
  std::byte* panels_;
  std::byte* a_rows_;
  std::byte* out_rows_;
  std::byte* bias_;
  std::byte* b_ = nullptr;
  RightLayout b_layout_ = RightLayout::plain;
};

}  // namespace

void use_bf16_products(Bf16Products products, StreamView stream) {
  cpu_stream(stream).kept<Products>().bf16_products = products;
}

std::size_t prepared_products(StreamView stream) {
  return cpu_stream(stream).kept<Products>().prepared.size();
}

void matmul(const MatmulArgs& args, StreamView stream) {
  CpuStream& on = cpu_stream(stream);
  on.launch([&kept = on.kept<Products>(), args] {
    has_few_rows(args) ? run_few_rows(kept, args) : Run(kept, args).run();
  });
}

}  // namespace dstrain::ops::cpu
