#include "launcher/doctor/checks.h"

#include <array>

#include "runtime/base/error.h"

namespace dstrain::launcher::doctor {
namespace {

constexpr std::array checks{
    Check{"programs", "programs", check_programs},
    Check{"programs", "plug_ins", check_plug_ins},
    Check{"programs", "libraries", check_libraries},
    Check{"machine", "processor", check_processor},
    Check{"machine", "gpus", check_gpus},
    Check{"machine", "gpu_sensors", check_gpu_sensors},
    Check{"machine", "cpu_limit", check_cpu_limit},
    Check{"memory", "free_memory", check_free_memory},
    Check{"memory", "memory_limit", check_memory_limit},
    Check{"memory", "overcommit", check_overcommit},
    Check{"memory", "memory_file", check_memory_file},
    Check{"memory", "shared_memory", check_shared_memory},
    Check{"memory", "huge_pages", check_huge_pages},
    Check{"memory", "locked_memory", check_locked_memory},
    Check{"limits", "open_files", check_open_files},
    Check{"limits", "processes", check_processes},
    Check{"limits", "process_limit", check_process_limit},
    Check{"limits", "core_files", check_core_files},
    Check{"disks", "io_uring", check_io_uring},
    Check{"disks", "disks", check_disks},
    Check{"network", "host_name", check_host_name},
    Check{"network", "hosts_file", check_hosts_file},
    Check{"network", "host_names", check_host_names},
    Check{"network", "master_port", check_master_port},
    Check{"ssh", "ssh_directory", check_ssh_directory},
    Check{"ssh", "ssh_keys", check_ssh_keys},
    Check{"ssh", "ssh_agent", check_ssh_agent},
    Check{"ssh", "ssh_config", check_ssh_config},
    Check{"ssh", "known_hosts", check_known_hosts},
    Check{"cluster", "mpi", check_mpi},
    Check{"cluster", "slurm", check_slurm},
    Check{"cluster", "slurm_pmix", check_slurm_pmix},
    Check{"environment", "visible_devices", check_visible_devices},
    Check{"environment", "threads", check_threads},
    Check{"environment", "rank_variables", check_rank_variables},
    Check{"environment", "starter_variables", check_starter_variables},
    Check{"environment", "dstrain_variables", check_dstrain_variables},
    Check{"environment", "master_address", check_master_address},
    Check{"environment", "library_path", check_library_path},
    Check{"environment", "locale", check_locale},
    Check{"leftovers", "leftover_processes", check_leftover_processes},
    Check{"leftovers", "leftover_files", check_leftover_files},
    Check{"leftovers", "job_sockets", check_job_sockets},
    Check{"leftovers", "runtime_directory", check_runtime_directory},
};

constexpr std::array level_names{"ok", "note", "problem"};

}  // namespace

std::span<const Check> all_checks() {
  return checks;
}

const char* name_of(Level level) {
  return level_names.at(static_cast<std::size_t>(level));
}

Level level_of(const std::string& name) {
  for (std::size_t i = 0; i < level_names.size(); ++i) {
    if (name == level_names[i]) return static_cast<Level>(i);
  }
  fail(ErrorCode::remote, "doctor: \"{}\" is not a level of a finding", name);
}

}  // namespace dstrain::launcher::doctor
