#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/comm/control/control_group.h"
#include "runtime/engine/parameter_store.h"
#include "runtime/model/model.h"

namespace dstrain::session {

/// Whole parameters by name, row-major, in f32, as the optimizer updates them.
using WholeParameters = std::map<std::string, std::vector<float>, std::less<>>;

/// Gathers them from the slices of all ranks, for every rank, between steps. Collective.
WholeParameters gather_parameters(engine::ParameterStore& store,
                                  comm::ControlGroup& control,
                                  const std::vector<model::ParameterSpec>& parameters);

/// Puts these values, the same on every rank, in place of those of the store, which keeps all
/// others and the optimizer's states. Each rank copies its part of all states to the host
/// meanwhile. Collective.
void replace_parameters(engine::ParameterStore& store,
                        const WholeParameters& values,
                        int rank,
                        StreamView stream);

}  // namespace dstrain::session
