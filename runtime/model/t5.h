#pragma once
#include "runtime/model/model.h"
#include "runtime/model/t5_config.h"

namespace dstrain::model {

/// Makes a T5 (Raffel et al. 2020) with units "encoder", "encoder.block.0" ... and "encoder.norm"
/// on the axis of the source, then "decoder", "decoder.block.0" ..., "decoder.norm" and "head".
/// Each block of the decoder reads the output of the encoder's norm. Blocks after the first of each
/// stack borrow its biases by distance; the decoder and, if tied, the head borrow the token table.
/// `config` must have passed check(). Initial values are Hugging Face's.
/// With W the heads' width and F = d_ff (twice that where the MLP is gated, and d_ff more with
/// dropout) a block of the encoder saves per token 4 W + C + F values of the model's dtype, and
/// log-sum-exps H and two statistics in f32; one of the decoder 6 W + 2 C + F, 2 H and three, and
/// 2 W per token of the source.
Model make_t5(const T5Config& config, const UnitOptions& options = {});

}  // namespace dstrain::model
