#include <map>
#include <string>
#include <unordered_map>

#include <oneapi/dnnl/dnnl.hpp>

#include "runtime/base/log.h"
#include "runtime/ops/matmul.h"
#include "runtime/ops/matmul_shape.h"

namespace dstrain::ops {
namespace {

using dnnl::memory;
constexpr auto f32 = memory::data_type::f32;

memory::desc operand(std::int64_t rows, std::int64_t columns, std::int64_t row, bool transposed) {
  return transposed ? memory::desc({rows, columns}, f32, memory::dims{1, row})
                    : memory::desc({rows, columns}, f32, memory::dims{row, 1});
}

/// The scratchpad is ours: the library's own belongs to the thread that prepared the product, which
/// need not be the stream's.
dnnl::primitive_attr attributes(const MatmulShape& shape) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (shape.accumulate) {
    dnnl::post_ops post_ops;
    post_ops.append_sum();
    attributes.set_post_ops(post_ops);
  }
  return attributes;
}

dnnl::matmul::primitive_desc describe(const MatmulShape& shape, const dnnl::engine& engine) {
  const auto a = operand(shape.m, shape.k, shape.a_row, shape.a_transposed);
  const auto b = operand(shape.k, shape.n, shape.b_row, shape.b_transposed);
  const auto out = operand(shape.m, shape.n, shape.out_row, false);
  const auto bias = operand(1, shape.n, shape.n, false);
  const auto desc =
      shape.bias ? dnnl::matmul::desc(a, b, bias, out) : dnnl::matmul::desc(a, b, out);
  return {desc, attributes(shape), engine};
}

/// oneDNN falls to its reference loops without a word; say so, once per shape.
void warn_if_slow(const MatmulShape& shape, const std::string& implementation) {
  if (implementation.find("ref") == std::string::npos) return;
  log_warning(fmt::format("a matrix product of {} x {} x {} runs on oneDNN's slow {}", shape.m,
                          shape.n, shape.k, implementation));
}

/// One prepared product: the primitive, and memory objects whose addresses each call sets.
struct Prepared {
  Prepared(const MatmulShape& shape, const dnnl::engine& engine)
      : Prepared(shape, engine, describe(shape, engine)) {}
  Prepared(const MatmulShape& shape,
           const dnnl::engine& engine,
           const dnnl::matmul::primitive_desc& description)
      : primitive(description),
        a(description.src_desc(), engine, nullptr),
        b(description.weights_desc(), engine, nullptr),
        out(description.dst_desc(), engine, nullptr),
        scratchpad(description.scratchpad_desc(), engine, nullptr),
        arguments{{DNNL_ARG_SRC, a},
                  {DNNL_ARG_WEIGHTS, b},
                  {DNNL_ARG_DST, out},
                  {DNNL_ARG_SCRATCHPAD, scratchpad}} {
    if (shape.bias) {
      bias = memory(description.bias_desc(), engine, nullptr);
      arguments.emplace(DNNL_ARG_BIAS, bias);
    }
    warn_if_slow(shape, description.impl_info_str());
  }

  /// `shared` is what all products use in turn; it grows to the largest need.
  void run(const MatmulArgs& args, const dnnl::stream& stream, memory& shared) {
    const memory::desc needed = scratchpad.get_desc();
    if (!shared || shared.get_desc().get_size() < needed.get_size()) {
      shared = memory(needed, stream.get_engine());
    }
    scratchpad.set_data_handle(shared.get_data_handle());
    a.set_data_handle(args.a.data());
    b.set_data_handle(args.b.data());
    out.set_data_handle(args.out.data());
    if (!args.bias.empty()) bias.set_data_handle(args.bias.data());
    primitive.execute(stream, arguments);
  }

  dnnl::matmul primitive;
  memory a;
  memory b;
  memory out;
  memory bias;
  memory scratchpad;
  std::unordered_map<int, memory> arguments;
};

}  // namespace

struct Matmuls::Cache {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<MatmulShape, Prepared> prepared;
  memory scratchpad;
};

Matmuls::Matmuls() : cache_(std::make_unique<Cache>()) {}
Matmuls::~Matmuls() = default;

void Matmuls::run(const MatmulArgs& args, StreamView stream) {
  const MatmulShape shape = matmul_shape(args);
  auto place = cache_->prepared.find(shape);
  if (place == cache_->prepared.end()) {
    place = cache_->prepared.try_emplace(shape, shape, cache_->engine).first;
  }
  // Entries of a map stay where they are, so the task may keep the address.
  stream.launch([this, args, prepared = &place->second] {
    prepared->run(args, cache_->stream, cache_->scratchpad);
  });
}

}  // namespace dstrain::ops
