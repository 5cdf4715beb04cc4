#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/doctor/finding.h"
#include "launcher/doctor/probe.h"
#include "runtime/rank/port_range.h"

namespace dstrain::launcher::doctor {

/// The input of all checks.
struct Question {
  std::vector<std::string> paths;  ///< further directories to check
  std::vector<std::string> hosts;  ///< the other hosts of the job, by their names in the hostfile
  std::vector<std::string>
      ssh_hosts;  ///< those of them that are reached with the user's own SSH files
  /// The error of a launch from the user's shell about variables that mpirun, srun or torchrun sets
  /// for its tasks; agents do not pass them on. Empty: none.
  std::string starter_refusal;
  std::optional<PortRange> ports{};  ///< at which hosts must reach each other; none: at any
};

/// One check of one machine. A page of docs/ has a row for each.
struct Check {
  std::string_view group;
  std::string_view name;
  void (*look)(const Probe& probe, const Question& question, Findings& findings);
};

/// The plug-in with which ranks use GPUs. check_gpus checks it, because it is useless without GPUs.
inline constexpr std::string_view gpu_plug_in = "libdstrain_cuda.so";

/// The plug-ins' files, by name, that a launch would open.
std::map<std::string, std::string> plug_ins(const Probe& probe);

/// All checks in the order of the report.
std::span<const Check> all_checks();

// programs.cpp
void check_programs(const Probe& probe, const Question& question, Findings& findings);
void check_plug_ins(const Probe& probe, const Question& question, Findings& findings);
void check_libraries(const Probe& probe, const Question& question, Findings& findings);
// processor.cpp
void check_processor(const Probe& probe, const Question& question, Findings& findings);
void check_gpus(const Probe& probe, const Question& question, Findings& findings);
void check_gpu_sensors(const Probe& probe, const Question& question, Findings& findings);
// cluster.cpp
void check_mpi(const Probe& probe, const Question& question, Findings& findings);
void check_slurm(const Probe& probe, const Question& question, Findings& findings);
void check_slurm_pmix(const Probe& probe, const Question& question, Findings& findings);
// ssh_files.cpp
void check_ssh_directory(const Probe& probe, const Question& question, Findings& findings);
void check_ssh_keys(const Probe& probe, const Question& question, Findings& findings);
void check_ssh_agent(const Probe& probe, const Question& question, Findings& findings);
void check_ssh_config(const Probe& probe, const Question& question, Findings& findings);
void check_known_hosts(const Probe& probe, const Question& question, Findings& findings);
// names.cpp
void check_host_name(const Probe& probe, const Question& question, Findings& findings);
void check_hosts_file(const Probe& probe, const Question& question, Findings& findings);
void check_host_names(const Probe& probe, const Question& question, Findings& findings);
void check_master_port(const Probe& probe, const Question& question, Findings& findings);
// memory.cpp
void check_free_memory(const Probe& probe, const Question& question, Findings& findings);
void check_overcommit(const Probe& probe, const Question& question, Findings& findings);
void check_memory_file(const Probe& probe, const Question& question, Findings& findings);
void check_shared_memory(const Probe& probe, const Question& question, Findings& findings);
void check_huge_pages(const Probe& probe, const Question& question, Findings& findings);
// limits.cpp
void check_locked_memory(const Probe& probe, const Question& question, Findings& findings);
void check_open_files(const Probe& probe, const Question& question, Findings& findings);
void check_processes(const Probe& probe, const Question& question, Findings& findings);
void check_core_files(const Probe& probe, const Question& question, Findings& findings);
void check_io_uring(const Probe& probe, const Question& question, Findings& findings);
// control_groups.cpp
void check_memory_limit(const Probe& probe, const Question& question, Findings& findings);
void check_cpu_limit(const Probe& probe, const Question& question, Findings& findings);
void check_process_limit(const Probe& probe, const Question& question, Findings& findings);
// disks.cpp
void check_disks(const Probe& probe, const Question& question, Findings& findings);
// leftovers.cpp
void check_leftover_processes(const Probe& probe, const Question& question, Findings& findings);
void check_leftover_files(const Probe& probe, const Question& question, Findings& findings);
void check_job_sockets(const Probe& probe, const Question& question, Findings& findings);
void check_runtime_directory(const Probe& probe, const Question& question, Findings& findings);
// environment.cpp
void check_visible_devices(const Probe& probe, const Question& question, Findings& findings);
void check_threads(const Probe& probe, const Question& question, Findings& findings);
void check_rank_variables(const Probe& probe, const Question& question, Findings& findings);
void check_starter_variables(const Probe& probe, const Question& question, Findings& findings);
void check_dstrain_variables(const Probe& probe, const Question& question, Findings& findings);
void check_master_address(const Probe& probe, const Question& question, Findings& findings);
void check_library_path(const Probe& probe, const Question& question, Findings& findings);
void check_locale(const Probe& probe, const Question& question, Findings& findings);

}  // namespace dstrain::launcher::doctor
