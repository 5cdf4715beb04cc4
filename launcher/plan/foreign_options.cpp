#include "launcher/plan/foreign_options.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "runtime/config/foreign_remedies.h"

namespace dstrain::launcher {
namespace {

using Hint = std::pair<std::string_view, std::string_view>;

namespace reply {
constexpr std::string_view ranks = "did you mean --num_gpus, the ranks of each node?";
constexpr std::string_view slots = "did you mean --include localhost:0,1, the slots of a host?";
constexpr std::string_view nodes = "did you mean --num_nodes?";
constexpr std::string_view hosts =
    "did you mean --include HOST@HOST, of the hosts in --hostfile FILE?";
constexpr std::string_view hostfile = "did you mean --hostfile?";
constexpr std::string_view variables = "did you mean --env NAME=VALUE?";
constexpr std::string_view cores = "did you mean --bind_cores_to_rank?";
constexpr std::string_view logs = "did you mean --enable_each_rank_log DIRECTORY?";
constexpr std::string_view printed =
    "leave it out: the output of all ranks is printed; pass --enable_each_rank_log DIRECTORY to "
    "keep it in files";
constexpr std::string_view config = "did you mean train --deepspeed FILE?";
constexpr std::string_view shards =
    "did you mean train --deepspeed FILE? zero_optimization.stage 3 shards as FSDP does";
constexpr std::string_view precision = "did you mean train --bf16?";
constexpr std::string_view offload_optimizer =
    "did you mean train --deepspeed FILE with {\"zero_optimization\": {\"stage\": 2, "
    "\"offload_optimizer\": {\"device\": \"cpu\"}}}?";
constexpr std::string_view offload_param =
    "did you mean train --deepspeed FILE with {\"zero_optimization\": {\"stage\": 3, "
    "\"offload_param\": {\"device\": \"cpu\"}}}?";
constexpr std::string_view for_srun = "did you mean --launcher_args \"OPTION\", for srun?";
constexpr std::string_view for_mpirun = "did you mean --launcher_args \"OPTION\", for mpirun?";
}  // namespace reply

constexpr std::array hints{
    // torchrun
    Hint{"--nnodes", reply::nodes},
    Hint{"--nproc_per_node", reply::ranks},
    Hint{"--rdzv_endpoint", "did you mean --master_addr HOST --master_port PORT?"},
    Hint{"--rdzv_backend",
         "leave it out: ranks meet in the store of rank 0 (--master_addr, --master_port)"},
    Hint{"--rdzv_id",
         "leave it out: the launcher keeps jobs apart (for several jobs with --no_ssh, set "
         "DSTRAIN_TOKEN)"},
    Hint{"--rdzv_conf", "did you mean --timeout, for the ranks to meet?"},
    Hint{"--standalone", "did you mean --launcher local?"},
    Hint{"-m", "did you mean --module?"},
    Hint{"--log_dir", reply::logs},
    Hint{"-r", reply::logs},
    Hint{"--redirects", reply::logs},
    Hint{"-t", reply::printed},
    Hint{"--tee", reply::printed},
    Hint{"--local_ranks_filter", reply::printed},
    Hint{"--local_addr", "did you mean --master_addr?"},
    Hint{"--role", "leave it out: all ranks are alike"},
    Hint{"--monitor_interval", "leave it out: the end of a rank is noticed at once"},
    Hint{"--start_method", "leave it out: each rank is a process that runs the program"},
    Hint{"--run_path", "leave it out: python3 runs a program whose name ends in .py"},
    Hint{"--use_env", "did you mean --no_local_rank?"},
    Hint{"--rank", "did you mean --no_ssh --node_rank?"},
    Hint{"--world_size", "did you mean --num_nodes and --num_gpus, the ranks of each node?"},
    Hint{"--gpu", reply::ranks},
    Hint{"--gpus", reply::ranks},
    Hint{"--ngpus", reply::ranks},
    Hint{"--devices", reply::ranks},
    // accelerate
    Hint{"--num_processes", reply::ranks},
    Hint{"--num_machines", reply::nodes},
    Hint{"--machine_rank", "did you mean --no_ssh --node_rank?"},
    Hint{"--main_process_ip", "did you mean --master_addr?"},
    Hint{"--main_process_port", "did you mean --master_port?"},
    Hint{"--gpu_ids", reply::slots},
    Hint{"--multi_gpu", "leave it out: all slots of all hosts get a rank"},
    Hint{"--cpu", "did you mean --device cpu?"},
    Hint{"--config_file", dstrain::config::accelerate_yaml},
    Hint{"--mixed_precision", reply::precision},
    Hint{"--use_deepspeed", reply::config},
    Hint{"--deepspeed_config_file", reply::config},
    Hint{"--zero_stage", "train --zero_stage"},
    Hint{"--gradient_accumulation_steps", "train --gradient_accumulation_steps"},
    Hint{"--gradient_clipping", "train --max_grad_norm"},
    Hint{"--offload_optimizer_device", reply::offload_optimizer},
    Hint{"--offload_param_device", reply::offload_param},
    Hint{"--zero3_init_flag",
         "leave it out: every rank makes or reads only its share of the weights"},
    Hint{"--zero3_save_16bit_model", "leave it out: model.safetensors is always written"},
    Hint{"--use_fsdp", reply::shards},
    Hint{"--dynamo_backend", "leave it out: ranks run compiled code"},
    Hint{"--same_network", "leave it out: hosts only have to reach each other"},
    Hint{"--main_training_function", "leave it out: the whole program runs"},
    Hint{"--deepspeed", "did you mean train --deepspeed FILE?"},
    Hint{"--deepspeed_config", "did you mean train --deepspeed FILE?"},
    Hint{"--deepspeed_hostfile", reply::hostfile},
    Hint{"--deepspeed_multinode_launcher",
         "did you mean --launcher? For \"standard\", run the command on each node with --no_ssh "
         "--node_rank R"},
    Hint{"--deepspeed_inclusion_filter", "did you mean --include?"},
    Hint{"--deepspeed_exclusion_filter", "did you mean --exclude?"},
    Hint{"--num_cpu_threads_per_process", "did you mean --env OMP_NUM_THREADS=N?"},
    // mpirun of Open MPI, mpiexec of MPICH, srun
    Hint{"-n", reply::ranks},
    Hint{"-np", reply::ranks},
    Hint{"--np", reply::ranks},
    Hint{"--ntasks", reply::ranks},
    Hint{"--ntasks_per_node", reply::ranks},
    Hint{"--gpus_per_node", reply::ranks},
    Hint{"-npernode", reply::ranks},
    Hint{"--npernode", reply::ranks},
    Hint{"-ppn", reply::ranks},
    Hint{"--ppn", reply::ranks},
    Hint{"-N", "did you mean --num_nodes, or --num_gpus, the ranks of each node?"},
    Hint{"--nodes", reply::nodes},
    Hint{"-host", reply::hosts},
    Hint{"--host", reply::hosts},
    Hint{"-hosts", reply::hosts},
    Hint{"--hosts", reply::hosts},
    Hint{"-w", reply::hosts},
    Hint{"--nodelist", reply::hosts},
    Hint{"-hostfile", reply::hostfile},
    Hint{"-machinefile", reply::hostfile},
    Hint{"--machinefile", reply::hostfile},
    Hint{"-f", reply::hostfile},
    Hint{"-x", reply::variables},
    Hint{"-genv", reply::variables},
    Hint{"--export", reply::variables},
    Hint{"-bind_to", reply::cores},
    Hint{"--bind_to", reply::cores},
    Hint{"--cpu_bind", reply::cores},
    Hint{"--jobid", "leave it out: dstrain uses the allocation that it runs in"},
    Hint{"--partition", reply::for_srun},
    Hint{"--time", reply::for_srun},
    Hint{"--gres", reply::for_srun},
    Hint{"--qos", reply::for_srun},
    Hint{"--constraint", reply::for_srun},
    Hint{"--exclusive", reply::for_srun},
    Hint{"--mem", reply::for_srun},
    Hint{"--cpus_per_task", reply::for_srun},
    Hint{"--mpi", reply::for_srun},
    Hint{"--label", "leave it out: lines begin with their rank"},
    Hint{"--kill_on_bad_exit", "leave it out: the first rank that fails ends the others"},
    Hint{"--wait", "did you mean --grace SECONDS?"},
    Hint{"--mca", reply::for_mpirun},
    Hint{"--map_by", reply::for_mpirun},
    Hint{"--allow_run_as_root", reply::for_mpirun},
    // DeepSpeed
    Hint{"--autotuning", "leave it out: dstrain plan tells what fits and how fast it is"},
    Hint{"--enable_elastic_training", "did you mean --elastic_training?"},
    Hint{"--world_info", "leave it out: the launcher tells the ranks"},
    Hint{"--comment", "did you mean --launcher_args \"--comment TEXT\"?"},
    Hint{"--account", "did you mean --launcher_args \"--account NAME\"?"},
};

/// Whether the value lists slots: "2,3", or just "2" for an option that selects slots.
bool names_slots(std::string_view hint, std::string_view value) {
  const bool numbers =
      !value.empty() && value.find_first_not_of("0123456789,") == std::string_view::npos;
  const bool list = value.find(',') != std::string_view::npos;
  return numbers && (hint == reply::slots || (hint == reply::ranks && list));
}

/// "train --zero_stage", an option of train that takes the same value.
bool names_train_option(std::string_view hint) {
  return hint.starts_with("train --");
}

/// The hint for this value, if it needs another one; else empty.
std::string_view hint_of_value(std::string_view hint, std::string_view value) {
  if (hint == reply::slots && value == "all") {
    return "leave it out: all slots of all hosts get a rank";
  }
  if (hint == reply::precision && value == "no") return "leave it out: training is in fp32";
  if (hint == reply::precision && value == "fp16") return "did you mean train --fp16?";
  const bool all = value == "gpu" || value == "auto" || value == "all";
  if (hint == reply::ranks && all) return "leave it out: all slots of all hosts get a rank";
  const bool offloads = hint == reply::offload_optimizer || hint == reply::offload_param;
  return offloads && value == "none" ? "leave it out: nothing is offloaded" : std::string_view();
}

}  // namespace

std::string hint_at_own_option(std::string_view name, std::string_view value) {
  const auto* const found = std::ranges::find(hints, name, &Hint::first);
  if (found == hints.end()) return {};
  const std::string_view hint = found->second;
  if (names_slots(hint, value)) return fmt::format("did you mean --include localhost:{}?", value);
  if (names_train_option(hint)) {
    return fmt::format("did you mean dstrain {}{}{}?", hint, value.empty() ? "" : " ", value);
  }
  const std::string_view said = hint_of_value(hint, value);
  return std::string(said.empty() ? hint : said);
}

}  // namespace dstrain::launcher
