#pragma once
#include <string>
#include <vector>

#include "runtime/config/train_settings.h"
#include "zero/flat_layout.h"
#include "zero/offload.h"

namespace dstrain::session {

/// Where a run's states live, as its configuration says. Host memory is pinned where that is asked
/// for; see unpin().
zero::Offload offload_of(const config::TrainSettings& settings);

/// The same without pinned memory, and what to tell those who asked for it by name.
zero::Offload unpin(const zero::Offload& offload,
                    const config::ZeroSettings& settings,
                    std::vector<std::string>& warnings);

/// Says that buffers for parameters are larger than asked for, as one unit's share must fit; empty
/// when they are not.
std::string describe_raise(const config::OffloadSettings& parameters,
                           const zero::Offload& offload,
                           const zero::FlatLayout& layout);

/// What a configuration calls the device of a tier: none, cpu or nvme.
const char* offload_device(MemoryTier tier);

}  // namespace dstrain::session
