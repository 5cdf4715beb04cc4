#pragma once
#include <cstdint>

namespace dstrain::zero {

/// The purpose for which parameters or states are lent.
enum class LeaseUse : std::uint8_t {
  read,          ///< nothing changes
  replace,       ///< all values are overwritten; the old ones are not read
  measure,       ///< the first of a step's two passes: changes states, not parameters
  update,        ///< a step: changes all parameters; the gradients come with the states
  update_early,  ///< the same for a sub-group on a disk, on the host queue (Offload::early)
};

constexpr bool changes_parameters(LeaseUse use) {
  return use != LeaseUse::read && use != LeaseUse::measure;
}

}  // namespace dstrain::zero
