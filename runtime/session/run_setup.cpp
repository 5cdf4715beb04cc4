#include "runtime/session/run_setup.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dstrain::session {

std::vector<std::string> describe_alike(const std::vector<config::EffectiveValue>& effective,
                                        const model::Model& model) {
  std::vector<std::string> lines;
  for (const config::EffectiveValue& value : effective) {
    if (!value.path.ends_with("nvme_path")) lines.push_back(value.path + " " + value.json);
  }
  lines.push_back("the device " + std::string(name_of(model.device)));
  const auto config = nlohmann::json::parse(model.config_json);
  for (const auto& [key, value] : config.items()) {
    lines.push_back(fmt::format("a model with {} {}", key, value.dump()));
  }
  return lines;
}

RankSession::Inputs session_inputs(const RunSetup& setup,
                                   JoinedRank& rank,
                                   const Remedies& remedies,
                                   Bytes others) {
  const Bytes budget = rank.worker().device_memory_bytes;
  return {.rank = rank,
          .model = setup.model,
          .memory = setup.memory,
          .settings = setup.settings,
          .alike = setup.alike,
          .device_memory = budget > 0 ? budget - others : 0,
          .check_room = [&setup, &remedies, others](DeviceRoom room) {
            if (room.free > 0) room.free = std::max<Bytes>(room.free - others, 1);
            check_room(setup.memory, setup.model, room, remedies);
          }};
}

}  // namespace dstrain::session
