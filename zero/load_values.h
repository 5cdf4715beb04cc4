#pragma once
#include "runtime/device/stream.h"
#include "runtime/model/parameter_source.h"
#include "runtime/tensor/tensor_view.h"

namespace dstrain::zero {

/// Reads elements [begin, begin + values.numel()) of a parameter into `values`, f32 or bf16 and
/// dense, wherever they lie: in pieces of host memory, from which they are copied or rounded. Waits
/// for `stream`.
void load_values(const model::ParameterSource& source,
                 const model::ParameterSpec& spec,
                 std::int64_t begin,
                 TensorView values,
                 StreamView stream);

}  // namespace dstrain::zero
