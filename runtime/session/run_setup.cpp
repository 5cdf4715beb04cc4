#include "runtime/session/run_setup.h"

namespace dstrain::session {

RankSession::Inputs session_inputs(const RunSetup& setup,
                                   JoinedRank& rank,
                                   const Remedies& remedies) {
  return {.rank = rank,
          .model = setup.model,
          .memory = setup.memory,
          .settings = setup.settings,
          .alike = setup.alike,
          .device_memory = rank.worker().device_memory_bytes,
          .check_room = [&setup, &remedies](const DeviceRoom& room) {
            check_room(setup.memory, setup.model, room, remedies);
          }};
}

}  // namespace dstrain::session
