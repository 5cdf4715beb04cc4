#include "runtime/ops/attention.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {
namespace {

/// Requires that `view` is a matrix of the dtype; its rows may be strided.
void require_rows(const TensorView& view, DType dtype, const Shape& shape, const char* what) {
  DSTRAIN_CHECK(!view.empty() && view.dtype() == dtype && view.shape() == shape,
                "{}: {}, expected {} of {}", what, to_string(view.shape()), to_string(shape),
                name_of(dtype));
}

Shape query_shape(const AttentionSizes& s) {
  return {s.sequences * s.tokens, s.heads * s.head_size};
}
Shape key_shape(const AttentionSizes& s) {
  return {s.sequences * s.keys, s.kv_heads * s.head_size};
}

template <class Args>
Shape bias_shape(const Args& args) {
  return {args.rule.buckets.count, args.sizes.heads};
}

/// Checks that forward and backward have in common.
template <class Args>
void check_common(const Args& args) {
  const AttentionSizes& s = args.sizes;
  const AttentionRule& rule = args.rule;
  DSTRAIN_CHECK(s.kv_heads > 0 && s.heads % s.kv_heads == 0, "{} heads share {}", s.heads,
                s.kv_heads);
  DSTRAIN_CHECK(!rule.causal || s.tokens == s.keys, "causal: {} queries, {} keys", s.tokens,
                s.keys);
  DSTRAIN_CHECK(rule.divisor > 0, "divisor {}", rule.divisor);
  DSTRAIN_CHECK(rule.window == 0 || (rule.causal && rule.window > 0), "window {}", rule.window);
  DSTRAIN_CHECK(rule.rotary.dims % 2 == 0 && rule.rotary.dims <= s.head_size &&
                    rule.rotary.dims <= Rotary::dims_max,
                "{} of {} features turn", rule.rotary.dims, s.head_size);
  const DType dtype = element_dtype(args.query, "query");
  require_rows(args.query, dtype, query_shape(s), "query");
  require_rows(args.key, dtype, key_shape(s), "key");
  require_rows(args.value, dtype, key_shape(s), "value");
  require_rows(args.output, dtype, query_shape(s), "output");
  require_f32(args.logsumexp, {s.sequences, s.heads, s.tokens}, "logsumexp");
  if (!args.key_count.empty()) {
    require_tensor(args.key_count, DType::i32, {s.sequences}, "key_count");
  }
  if (!args.first_key.empty()) {
    DSTRAIN_CHECK(rule.causal, "the first key of a query that sees all");
    require_tensor(args.first_key, DType::i32, {s.sequences, s.tokens}, "first_key");
  }
  if (rule.buckets.active()) require_tensor(args.bias, dtype, bias_shape(args), "bias");
  require_dropout_site(args.dropout);
}

}  // namespace

void attention_forward(const AttentionArgs& args, StreamView stream) {
  check_common(args);
  require_workspace(args.workspace,
                    attention_forward_workspace(args.sizes, args.rule, stream.device().kind));
  op_table(stream).attention_forward(args, stream);
}

void attention_backward(const AttentionBackwardArgs& args, StreamView stream) {
  check_common(args);
  const DType dtype = args.query.dtype();
  require_rows(args.output_gradient, dtype, query_shape(args.sizes), "output_gradient");
  require_rows(args.query_gradient, dtype, query_shape(args.sizes), "query_gradient");
  require_rows(args.key_gradient, dtype, key_shape(args.sizes), "key_gradient");
  require_rows(args.value_gradient, dtype, key_shape(args.sizes), "value_gradient");
  if (!args.bias_gradient.empty()) {
    require_f32(args.bias_gradient, bias_shape(args), "bias_gradient");
  }
  require_workspace(args.workspace,
                    attention_backward_workspace(args.sizes, args.rule, stream.device().kind));
  op_table(stream).attention_backward(args, stream);
}

}  // namespace dstrain::ops
