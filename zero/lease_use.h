#pragma once
#include <cstdint>

namespace dstrain::zero {

/// What parameters or states are lent for.
enum class LeaseUse : std::uint8_t {
  read,          ///< they stay as they are
  replace,       ///< all of them get new values from elsewhere: what they hold now means nothing
  measure,       ///< the first of a step's two passes: states change, parameters do not
  update,        ///< a step: all parameters get new values; the gradients come with the states
  update_early,  ///< likewise, of what lies on a disk, on the host's queue (Offload::early)
};

constexpr bool changes_parameters(LeaseUse use) {
  return use != LeaseUse::read && use != LeaseUse::measure;
}

}  // namespace dstrain::zero
