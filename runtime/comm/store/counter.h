#pragma once
#include <charconv>
#include <cstdint>
#include <string>

namespace dstrain::comm {

/// Counters are kept as decimal text, so that get() can read them. Adds to one and returns the sum;
/// a value that is no number counts as 0.
inline std::int64_t add_to_counter(std::string& value, std::int64_t delta) {
  std::int64_t sum = 0;
  std::from_chars(value.data(), value.data() + value.size(), sum);
  sum += delta;
  value = std::to_string(sum);
  return sum;
}

}  // namespace dstrain::comm
