#include "runtime/session/checkpoint_setup.h"

#include <algorithm>
#include <numeric>

#include "runtime/comm/hierarchical/node_map.h"
#include "runtime/os/visibility.h"

namespace dstrain::session {
namespace {

/// The ranks that write into the same directory as this one.
std::vector<int> directory_ranks(const RunSetup& setup,
                                 const WorkerEnv& worker,
                                 comm::ControlGroup& control) {
  if (setup.settings.checkpoint.node_local) {
    const comm::NodeMap map = comm::map_nodes(control.gather(
        comm::NodeClaim{worker.node_rank, worker.local_rank, worker.local_world_size}));
    return map.nodes[static_cast<std::size_t>(map.node_of(worker.rank))];
  }
  std::vector<int> all(static_cast<std::size_t>(worker.world_size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

engine::Checkpointer::Inputs checkpointer_inputs(const RunSetup& setup,
                                                 JoinedRank& rank,
                                                 RankSession& session,
                                                 std::function<void(const std::string&)> say,
                                                 std::function<void()> flush_beside) {
  MemoryResource* const disk = session.disks().staging();
  return {.model = setup.model,
          .store = session.store(),
          .control = session.control_group(),
          .directory_ranks = directory_ranks(setup, rank.worker(), session.control_group()),
          .staging = disk != nullptr ? *disk : session.memory().host.staging,
          .say = std::move(say),
          .flush_beside = std::move(flush_beside),
          .progress = &rank.progress()};
}

engine::Checkpointer::Options checkpointer_options(const RunSetup& setup,
                                                   const JoinedRank& rank,
                                                   const std::filesystem::path& output) {
  const config::TrainSettings& settings = setup.settings;
  return {.output = output,
          .ds_config = settings.ds_config_text.empty() ? "{}\n" : settings.ds_config_text,
          .total_limit = settings.checkpoint.save_total_limit,
          .keeps_best = settings.evaluation.tracks_best,
          .whole_model = settings.checkpoint.whole_model,
          .visible_seconds = visible_within(rank.worker())};
}

double visible_within(const WorkerEnv& worker) {
  return std::min(visible_seconds, worker.timeout_seconds / 2);
}

}  // namespace dstrain::session
