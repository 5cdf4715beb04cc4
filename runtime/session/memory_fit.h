#pragma once
#include <functional>
#include <string>

#include "runtime/session/joined_rank.h"
#include "runtime/session/memory_setup.h"

namespace dstrain::session {

/// What makes a run take less memory than `limit` (0: not known), as the end of a sentence: of a
/// rank's device, or of `ranks` ranks of this machine.
struct Remedies {
  std::function<std::string(Bytes limit)> device;
  std::function<std::string(int ranks, Bytes limit)> machine;
};

/// These throw Error{config} with the plan and what would help, where the plan of a run does not
/// fit ...
/// ... into the budget of a rank (--device_memory; 0: there is none).
void check_budget(const MemorySetup& memory, Bytes budget, const Remedies& remedies);
/// ... with what libraries take, into the room of a rank's device.
void check_room(const MemorySetup& memory,
                const model::Model& model,
                const DeviceRoom& room,
                const Remedies& remedies);
/// ... `ranks` times into this machine's memory. `budget`: see exceeded_memory().
void check_machine(const MemorySetup& memory, int ranks, Bytes budget, const Remedies& remedies);

}  // namespace dstrain::session
