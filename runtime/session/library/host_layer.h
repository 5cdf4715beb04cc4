#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include <dstrain/model_builder.h>

#include "runtime/model/layer.h"

namespace dstrain {

/// Runs a CustomLayer of so many inputs: brings what it reads to the host in f32, and takes what it
/// writes from there.
std::unique_ptr<model::Layer> make_host_layer(std::shared_ptr<const CustomLayer> layer,
                                              std::size_t inputs,
                                              std::vector<model::ParameterRef> parameters);

}  // namespace dstrain
