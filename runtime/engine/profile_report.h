#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/comm/control/control_group.h"
#include "runtime/model/model.h"
#include "runtime/profile/timeline.h"

namespace dstrain::engine {

/// The names of the model's units, in their order.
std::vector<std::string> unit_names(const model::Model& model);

/// Collects the timelines of all ranks on rank 0, which writes them to `path` as a Chrome trace.
/// Ranks broadcast one after another, and all but rank 0 discard the data. Collective; call when
/// nothing is recorded any more.
void write_profile(profile::Timeline& timeline,
                   const model::Model& model,
                   comm::ControlGroup& control,
                   const std::filesystem::path& path);

}  // namespace dstrain::engine
