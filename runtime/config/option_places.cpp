#include "runtime/config/option_places.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/base/printable.h"

namespace dstrain::config {

OptionPlaces OptionPlaces::decode(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    OptionPlaces places(json.at("file").get<std::string>());
    for (const auto& [option, line] : json.at("lines").items()) {
      places.add(option, line.get<int>());
    }
    for (const auto& position : json.at("section")) {
      places.section_.push_back({position.at(0).get<int>(), position.at(1).get<int>()});
    }
    return places;
  } catch (const nlohmann::json::exception&) {
    fail(ErrorCode::usage, "environment variable {}: expected what dstrain sets, got \"{}\"",
         env::option_places, printable(text));
  }
}

std::string OptionPlaces::encode() const {
  nlohmann::json json{{"file", file_}, {"lines", lines_}, {"section", nlohmann::json::array()}};
  for (const Position& position : section_) {
    json["section"].push_back({position.line, position.column});
  }
  return json.dump();
}

std::string OptionPlaces::of(std::string_view option) const {
  const auto found = lines_.find(option);
  return found == lines_.end() ? std::string()
                               : fmt::format("{}:{}", printable(file_), found->second);
}

std::string OptionPlaces::phrase(std::string_view option) const {
  const std::string place = of(option);
  return place.empty() ? "on the command line" : fmt::format("at {}", place);
}

std::string OptionPlaces::put_into(std::string_view message) const {
  std::string text;
  while (!message.empty()) {
    const std::size_t end = std::min(message.find('\n'), message.size() - 1) + 1;
    const std::string_view line = message.substr(0, end);
    message.remove_prefix(end);
    const std::string place = of(line.substr(0, line.find_first_of(" :=")));
    if (!place.empty()) text += place + ": ";
    text += line;
  }
  return text;
}

}  // namespace dstrain::config
