#include <string>

#include "runtime/base/log.h"
#include "runtime/ops/prepared_product.h"

namespace dstrain::ops {
namespace {

using dnnl::memory;
using tag = memory::format_tag;

memory::data_type data_type(DType dtype) {
  return dtype == DType::f32 ? memory::data_type::f32 : memory::data_type::bf16;
}

memory::desc panels(const memory::dims& sizes, DType dtype) {
  return {sizes, data_type(dtype), dtype == DType::f32 ? tag::BA16a64b : tag::BA16a64b2a};
}

memory::desc right_operand(const ProductKey& key) {
  const memory::dims sizes{key.k, key.n};
  if (key.b == RightLayout::panels) return panels(sizes, key.compute);
  return {sizes, data_type(key.compute), key.b == RightLayout::plain ? tag::ab : tag::ba};
}

/// We own the scratchpad: the library's belongs to the thread that prepared the product, which may
/// differ from the stream's.
dnnl::primitive_attr attributes(const ProductKey& key) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (key.accumulate) {
    dnnl::post_ops post_ops;
    post_ops.append_sum();
    attributes.set_post_ops(post_ops);
  }
  return attributes;
}

/// The tensors that a product reads and writes; an empty `bias` adds none.
struct Operands {
  memory::desc a;
  memory::desc b;
  memory::desc bias;
  memory::desc out;
};

/// oneDNN 3 dropped the operation descriptors of oneDNN 2.
dnnl::matmul::primitive_desc describe(const Operands& of,
                                      const dnnl::primitive_attr& attributes,
                                      const dnnl::engine& engine) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, of.a, of.b, of.bias, of.out, attributes};
#else
  return {dnnl::matmul::desc(of.a, of.b, of.bias, of.out), attributes, engine};
#endif
}

dnnl::matmul::primitive_desc describe(const ProductKey& key, const dnnl::engine& engine) {
  const Operands operands{
      .a = {{key.m, key.k}, data_type(key.compute), key.a_transposed ? tag::ba : tag::ab},
      .b = right_operand(key),
      .bias = key.bias ? memory::desc({1, key.n}, memory::data_type::f32, tag::ab) : memory::desc(),
      .out = {{key.m, key.n}, data_type(key.out), tag::ab}};
  return describe(operands, attributes(key), engine);
}

/// oneDNN silently falls back to its reference loops; warns once per shape.
void warn_if_slow(const ProductKey& key, const std::string& implementation) {
  if (implementation.find("ref") == std::string::npos) return;
  log_warning(fmt::format("a matrix product of {} x {} x {} runs on oneDNN's slow {}", key.m, key.n,
                          key.k, implementation));
}

}  // namespace

void Scratchpad::lend(memory& user) {
  const memory::desc needed = user.get_desc();
  if (!memory_ || memory_.get_desc().get_size() < needed.get_size()) {
    memory_ = memory(needed, user.get_engine());
  }
  user.set_data_handle(memory_.get_data_handle());
}

bool PreparedProduct::reads_panels(DType dtype, const dnnl::engine& engine) {
  const memory::dims sizes{64, 64};
  const memory::desc plain(sizes, data_type(dtype), tag::ab);
  const memory::desc any(sizes, data_type(dtype), tag::any);
  const Operands operands{.a = plain, .b = any, .bias = {}, .out = plain};
  return describe(operands, {}, engine).weights_desc() == panels(sizes, dtype);
}

PreparedProduct::PreparedProduct(const ProductKey& key, const dnnl::engine& engine)
    : PreparedProduct(key, engine, describe(key, engine)) {}

PreparedProduct::PreparedProduct(const ProductKey& key,
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
  if (key.bias) {
    bias_ = memory(description.bias_desc(), engine, nullptr);
    arguments_.emplace(DNNL_ARG_BIAS, bias_);
  }
  warn_if_slow(key, description.impl_info_str());
}

void PreparedProduct::run(const ProductAddresses& addresses,
                          const dnnl::stream& stream,
                          Scratchpad& scratchpad) {
  scratchpad.lend(scratchpad_);
  a_.set_data_handle(addresses.a);
  b_.set_data_handle(addresses.b);
  out_.set_data_handle(addresses.out);
  if (addresses.bias != nullptr) bias_.set_data_handle(addresses.bias);
  product_.execute(stream, arguments_);
}

}  // namespace dstrain::ops
