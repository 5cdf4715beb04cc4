#include "runtime/model/layers/features_layer.h"

#include "runtime/ops/convert.h"

namespace dstrain::model {

void FeaturesLayer::forward(const LayerCall& call) const {
  ops::convert(call.unit.features, call.output, call.stream);
}

}  // namespace dstrain::model
