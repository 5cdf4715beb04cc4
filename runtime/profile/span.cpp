#include "runtime/profile/span.h"

#include <fmt/format.h>

namespace dstrain::profile {
namespace {

bool is_of_unit(Activity activity) {
  return activity == Activity::forward || activity == Activity::recompute ||
         activity == Activity::backward;
}

}  // namespace

std::string label(Activity activity, std::int64_t detail, std::span<const std::string> units) {
  const std::string_view name = name_of(activity);
  if (activity == Activity::step || activity == Activity::load) {
    return fmt::format("{} {}", name, detail);
  }
  if (!is_of_unit(activity)) return std::string(name);
  return fmt::format("{} {}", name, units[static_cast<std::size_t>(detail)]);
}

}  // namespace dstrain::profile
