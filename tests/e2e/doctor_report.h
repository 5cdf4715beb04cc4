#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace dstrain::test {

/// The findings of one check on one host, in what `dstrain doctor --json` prints.
inline std::vector<nlohmann::json> findings_of(const nlohmann::json& report,
                                               const std::string& host,
                                               const std::string& check) {
  std::vector<nlohmann::json> found;
  for (const nlohmann::json& one : report.at("hosts")) {
    for (const nlohmann::json& finding : one.at("findings")) {
      if (one.at("host") == host && finding.at("check") == check) found.push_back(finding);
    }
  }
  return found;
}

}  // namespace dstrain::test
