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

/// Rows of b a multiple of 4 KiB apart fall on the same cache sets and halve the speed; such a b is
/// first packed into the format that oneDNN likes best, which costs about a tenth of the product.
bool packs_b(const MatmulShape& shape) {
  constexpr std::int64_t page_numel = 1024;
  constexpr std::int64_t rows_worth_packing = 64;
  return !shape.b_transposed && shape.b_row % page_numel == 0 && shape.m >= rows_worth_packing;
}

dnnl::matmul::primitive_desc describe(const MatmulShape& shape, const dnnl::engine& engine) {
  const auto a = operand(shape.m, shape.k, shape.a_row, shape.a_transposed);
  const auto b = packs_b(shape) ? memory::desc({shape.k, shape.n}, f32, memory::format_tag::any)
                                : operand(shape.k, shape.n, shape.b_row, shape.b_transposed);
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

/// Memory that all products use in turn; it grows to the largest need.
class SharedMemory {
 public:
  void lend(memory& user) {
    const memory::desc needed = user.get_desc();
    if (!memory_ || memory_.get_desc().get_size() < needed.get_size()) {
      memory_ = memory(needed, user.get_engine());
    }
    user.set_data_handle(memory_.get_data_handle());
  }

 private:
  memory memory_;
};

/// One prepared product: the primitive, and memory objects whose addresses each call sets.
class Prepared {
 public:
  Prepared(const MatmulShape& shape, const dnnl::engine& engine)
      : Prepared(shape, engine, describe(shape, engine)) {}

  void run(const MatmulArgs& args,
           const dnnl::stream& stream,
           SharedMemory& scratchpads,
           SharedMemory& packed) {
    scratchpads.lend(scratchpad_);
    a_.set_data_handle(args.a.data());
    out_.set_data_handle(args.out.data());
    if (!args.bias.empty()) bias_.set_data_handle(args.bias.data());
    if (pack_) {
      packed.lend(b_);
      plain_b_.set_data_handle(args.b.data());
      pack_.execute(stream, plain_b_, b_);
    } else {
      b_.set_data_handle(args.b.data());
    }
    product_.execute(stream, arguments_);
  }

 private:
  Prepared(const MatmulShape& shape,
           const dnnl::engine& engine,
           const dnnl::matmul::primitive_desc& description)
      : product_(description),
        a_(description.src_desc(), engine, nullptr),
        b_(description.weights_desc(), engine, nullptr),
        out_(description.dst_desc(), engine, nullptr),
        scratchpad_(description.scratchpad_desc(), engine, nullptr),
        arguments_{{DNNL_ARG_SRC, a_},
                   {DNNL_ARG_WEIGHTS, b_},
                   {DNNL_ARG_DST, out_},
                   {DNNL_ARG_SCRATCHPAD, scratchpad_}} {
    if (shape.bias) {
      bias_ = memory(description.bias_desc(), engine, nullptr);
      arguments_.emplace(DNNL_ARG_BIAS, bias_);
    }
    if (packs_b(shape)) {
      plain_b_ = memory(operand(shape.k, shape.n, shape.b_row, false), engine, nullptr);
      pack_ = dnnl::reorder(plain_b_, b_);
    }
    warn_if_slow(shape, description.impl_info_str());
  }

  dnnl::matmul product_;
  dnnl::reorder pack_;  ///< empty unless b is packed
  memory a_;
  memory b_;
  memory plain_b_;
  memory out_;
  memory bias_;
  memory scratchpad_;
  std::unordered_map<int, memory> arguments_;
};

}  // namespace

struct Matmuls::Cache {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<MatmulShape, Prepared> prepared;
  SharedMemory scratchpads;
  SharedMemory packed;
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
  stream.launch([cache = cache_.get(), args, prepared = &place->second] {
    prepared->run(args, cache->stream, cache->scratchpads, cache->packed);
  });
}

}  // namespace dstrain::ops
