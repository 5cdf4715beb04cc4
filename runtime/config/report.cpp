#include "runtime/config/report.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "runtime/config/schedule_json.h"

namespace dstrain::config {
namespace {

using Json = nlohmann::ordered_json;

/// "a.b" -> /a/b
Json::json_pointer pointer_to(std::string path) {
  std::replace(path.begin(), path.end(), '.', '/');
  return Json::json_pointer("/" + path);
}

}  // namespace

std::string report_json(const Resolved& resolved) {
  Json effective = Json::object();
  Json origin = Json::object();
  for (const EffectiveValue& value : resolved.effective) {
    effective[pointer_to(value.path)] = Json::parse(value.json);
    origin[value.path] = value.origin;
  }
  const Json report = {{"effective", std::move(effective)},
                       {"origin", std::move(origin)},
                       {"schedule", Json::parse(schedule_json(resolved.settings.schedule))},
                       {"warnings", resolved.settings.warnings}};
  return report.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace dstrain::config
