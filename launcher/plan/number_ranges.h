#pragma once
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace dstrain::launcher {

/// Both ends included, as they were written: the last may be the smaller one.
struct NumberRange {
  int first = 0;
  int last = 0;
};

/// The parts of "0, 2-4, -1" in their order; blanks around a number do not count. The failure is
/// the word that is no number.
Result<std::vector<NumberRange>> parse_number_ranges(std::string_view list);

}  // namespace dstrain::launcher
