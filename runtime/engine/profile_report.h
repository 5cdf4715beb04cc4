#pragma once
#include <filesystem>

#include "runtime/comm/communicator.h"
#include "runtime/model/model.h"
#include "runtime/profile/timeline.h"

namespace dstrain::engine {

/// Collects the timelines of all ranks on rank 0, which writes them to `path` as Chrome's trace,
/// rank by rank. Collective, when nothing is recorded any more.
void write_profile(const profile::Timeline& timeline,
                   const model::Model& model,
                   comm::Communicator& communicator,
                   const std::filesystem::path& path,
                   StreamView stream);

}  // namespace dstrain::engine
