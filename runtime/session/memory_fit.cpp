#include "runtime/session/memory_fit.h"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/base/units.h"
#include "runtime/ops/library_memory.h"

namespace dstrain::session {
namespace {

[[noreturn]] void refuse(const MemorySetup& memory,
                         const std::string& limit,
                         const std::string& remedy) {
  fail(ErrorCode::config, "the run needs {} of device memory per rank and {} ({}); {}",
       format_bytes(memory.plan.total()), limit, zero::describe(memory.plan, memory.formula),
       remedy);
}

}  // namespace

void check_budget(const MemorySetup& memory, Bytes budget, const Remedies& remedies) {
  if (budget == 0 || memory.plan.total() <= budget) return;
  refuse(memory, fmt::format("--device_memory allows {}", format_bytes(budget)),
         remedies.device(budget));
}

void check_room(const MemorySetup& memory,
                const model::Model& model,
                const DeviceRoom& room,
                const Remedies& remedies) {
  const Bytes libraries = ops::library_bytes(model.device, memory.engine.ranks);
  if (room.free == 0 || memory.plan.total() + libraries <= room.free) return;
  refuse(memory,
         fmt::format("GPU {} has {} free for each, of which CUDA's libraries may take {}", room.gpu,
                     format_bytes(room.free), format_bytes(libraries)),
         remedies.device(std::max<Bytes>(room.free - libraries, 1)));
}

void check_machine(const MemorySetup& memory, int ranks, Bytes budget, const Remedies& remedies) {
  const auto exceeded = exceeded_memory(memory.plan, ranks, budget);
  if (!exceeded) return;
  fail(ErrorCode::config, "{} ({}); {}{}", exceeded->reason,
       zero::describe(memory.plan, memory.formula), remedies.machine(ranks, exceeded->bytes),
       budget > 0 ? "" : "; --host_memory SIZE overrides it, as does DSTRAIN_HOST_MEMORY in bytes");
}

}  // namespace dstrain::session
