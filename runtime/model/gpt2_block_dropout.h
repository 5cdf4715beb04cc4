#pragma once
#include "runtime/model/unit.h"
#include "runtime/ops/dropout_site.h"

namespace dstrain::model {

/// Places of a unit that drop; each has its own random numbers.
enum class Gpt2DropoutPlace : std::uint32_t { embedding, attention, attention_branch, mlp_branch };

/// The mask of `place` in this call; not active outside training.
inline ops::DropoutSite dropout_site(const DropoutSource& source,
                                     Gpt2DropoutPlace place,
                                     float rate) {
  return {
      .rate = source.training ? rate : 0.0F,
      .seed = ops::dropout_site_seed(source.seed, source.unit, static_cast<std::uint32_t>(place)),
      .counter = source.counter};
}

}  // namespace dstrain::model
