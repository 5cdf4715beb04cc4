#include "runtime/tokenizer/growth_limit.h"

#include <algorithm>

#include "runtime/base/error.h"

namespace dstrain::tokenizer {

GrowthLimit GrowthLimit::of(std::size_t bytes, std::string_view place) {
  constexpr std::size_t growth = 64;
  constexpr std::size_t small = std::size_t{4} << 10;
  constexpr std::size_t most = std::size_t{4} << 30;
  return {bytes + std::min(most, small + (growth - 1) * bytes), place};
}

void GrowthLimit::refuse(const char* step) const {
  fail(ErrorCode::input,
       "{}: {}: makes more than {} bytes of one text, over 64 times what it was; give a tokenizer "
       "whose steps replace less",
       place, step, bytes_max);
}

}  // namespace dstrain::tokenizer
