#include "tests/fault/swapping_run.h"

#include <fmt/format.h>

#include "launcher/process/children.h"

namespace dstrain::test {

using nlohmann::json;

ResumableRun plain_run() {
  return {.ranks = 2,
          .stage = 3,
          .micro_batch = 3,
          .clipping = 100,
          .environment = {{"OMP_NUM_THREADS", "1"}}};
}

ResumableRun swapping_run(const std::filesystem::path& disk, bool early) {
  ResumableRun run = plain_run();
  const json nvme{{"device", "nvme"}, {"nvme_path", disk.string()}, {"buffer_count", 2}};
  run.zero = {{"offload_optimizer", nvme}, {"offload_param", nvme}, {"sub_group_size", 4000}};
  run.zero["offload_param"]["max_in_cpu"] = 0;
  run.zero["offload_optimizer"]["super_offload"] = early;
  return run;
}

pid_t rank_pid(const Launch& launch, int rank, const std::string& program) {
  for (const pid_t pid : launch.processes()) {
    const bool is_rank = launcher::has_environment_entry(pid, fmt::format("RANK={}", rank).c_str());
    if (is_rank && read_bytes(fmt::format("/proc/{}/comm", pid)) == program + "\n") return pid;
  }
  return 0;
}

std::vector<std::string> results_in(const std::filesystem::path& output) {
  TrainRun run;
  run.metrics = read_metrics(output);
  return results_of(run);
}

int count_in(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace dstrain::test
