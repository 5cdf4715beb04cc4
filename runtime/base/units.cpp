#include "runtime/base/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "runtime/base/utf8.h"

namespace dstrain {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};

constexpr std::array<Unit, 14> units{{{"", 1},
                                      {"b", 1},
                                      {"k", 1024.0},
                                      {"kb", 1e3},
                                      {"kib", 1024.0},
                                      {"m", 1048576.0},
                                      {"mb", 1e6},
                                      {"mib", 1048576.0},
                                      {"g", 1073741824.0},
                                      {"gb", 1e9},
                                      {"gib", 1073741824.0},
                                      {"t", 1099511627776.0},
                                      {"tb", 1e12},
                                      {"tib", 1099511627776.0}}};

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const auto* const unit = std::find_if(
      units.begin(), units.end(),
      [name = lower_case(rest)](const Unit& candidate) { return candidate.name == name; });
  if (error != std::errc{} || unit == units.end() || !(number >= 0) ||
      number * unit->bytes > 9e18) {
    return Failure{fmt::format("\"{}\" is not a size; write for example 512MiB or 2GiB", text)};
  }
  return static_cast<Bytes>(std::llround(number * unit->bytes));
}

std::string format_bytes(Bytes bytes) {
  constexpr std::array<const char*, 5> names{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1023.5 && unit + 1 < names.size()) {  // not "1024 KiB"
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", bytes);
  const double size = std::abs(value);
  const int decimals = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, names[unit]);
}

std::string format_duration(double seconds) {
  constexpr double longest = 1e12;  // an estimate may divide by zero
  if (std::isnan(seconds)) return "?";
  const auto total = static_cast<std::int64_t>(std::llround(std::clamp(seconds, 0.0, longest)));
  if (total < 60) return fmt::format("{}s", total);
  if (total < 3600) return fmt::format("{}m{:02}s", total / 60, total % 60);
  return fmt::format("{}h{:02}m", total / 3600, total / 60 % 60);
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace dstrain
