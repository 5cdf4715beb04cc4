#include "runtime/ops/attention.h"

#include "runtime/ops/checks.h"
#include "runtime/ops/op_table.h"

namespace dstrain::ops {
namespace {

/// What forward and backward have in common.
template <class Args>
AttentionSizes checked_sizes(const Args& args) {
  const AttentionSizes sizes = attention_sizes(args.qkv, args.logsumexp);
  const DType dtype = element_dtype(args.qkv, "qkv");
  require_tensor(args.qkv, dtype, args.qkv.shape(), "qkv");
  require_tensor(args.output, dtype, {sizes.sequences, sizes.tokens, sizes.channels}, "output");
  require_f32(args.logsumexp, args.logsumexp.shape(), "logsumexp");
  require_dropout_site(args.dropout);
  return sizes;
}

}  // namespace

AttentionSizes attention_sizes(const TensorView& qkv, const TensorView& logsumexp) {
  const Shape& packed = qkv.shape();
  const Shape& lse = logsumexp.shape();
  DSTRAIN_CHECK(packed.rank() == 3 && lse.rank() == 3 && lse[1] > 0 &&
                    packed[2] % (3 * lse[1]) == 0 && lse == Shape({packed[0], lse[1], packed[1]}),
                "qkv {} logsumexp {}", to_string(packed), to_string(lse));
  return {packed[0], packed[1], lse[1], packed[2] / 3};
}

void attention_forward(const AttentionArgs& args, StreamView stream) {
  const AttentionSizes sizes = checked_sizes(args);
  require_workspace(args.workspace, attention_forward_workspace(sizes, stream.device().kind));
  op_table(stream).attention_forward(args, stream);
}

void attention_backward(const AttentionBackwardArgs& args, StreamView stream) {
  const AttentionSizes sizes = checked_sizes(args);
  require_tensor(args.output_gradient, args.qkv.dtype(), args.output.shape(), "output_gradient");
  require_tensor(args.qkv_gradient, args.qkv.dtype(), args.qkv.shape(), "qkv_gradient");
  require_workspace(args.workspace, attention_backward_workspace(sizes, stream.device().kind));
  op_table(stream).attention_backward(args, stream);
}

}  // namespace dstrain::ops
