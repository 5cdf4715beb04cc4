#include "launcher/plan/options.h"

#include <sstream>

#include "runtime/base/error.h"
#include "tests/support/catch.h"

using namespace dstrain;
using launcher::CommandLine;
using launcher::LaunchOptions;
using launcher::parse_command_line;
using Words = std::vector<std::string>;

namespace {

Words words_of(const std::string& text) {
  Words words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, '|');) words.push_back(word);
  return words;
}

std::string error_of(const Words& words) {
  try {
    parse_command_line(words);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::usage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("Options: everything after the first word is the program's", "[launcher]") {
  const CommandLine line =
      parse_command_line(Words{"--num_gpus", "2", "t.py", "--num_gpus", "9", "--save_pid", "-x",
                               "--", "y", "", "--s", "two words"});
  CHECK(line.options.num_gpus == 2);
  CHECK_FALSE(line.options.save_pid);
  CHECK(line.command ==
        Words{"t.py", "--num_gpus", "9", "--save_pid", "-x", "--", "y", "", "--s", "two words"});
}

TEST_CASE("Options: spellings", "[launcher]") {
  const std::string text = GENERATE(values<const char*>({
      "--num_gpus|3|p",
      "--num-gpus|3|p",
      "--num_gpus=3|p",
      "--num-gpus=3|p",
      "--num_accelerators|3|p",
      "--num-accelerators=3|p",
      "--num_gpus=1|--num-gpus=3|p",
      "--num_gpus|3|--|p",
  }));
  CAPTURE(text);
  const CommandLine line = parse_command_line(words_of(text));
  CHECK(line.options.num_gpus == 3);
  CHECK(line.command == Words{"p"});
}

TEST_CASE("Options: values arrive as typed", "[launcher]") {
  const CommandLine line = parse_command_line(Words{"-Hfile",
                                                    "-i",
                                                    "a:0@b",
                                                    "-e",
                                                    "",
                                                    "--env",
                                                    "A=x,y z",
                                                    "--env=B",
                                                    "--master-port",
                                                    "1234",
                                                    "--grace",
                                                    "0.5",
                                                    "--timeout=7",
                                                    "--device_memory",
                                                    "2GiB",
                                                    "--host_memory=64GiB",
                                                    "-q",
                                                    "--dry-run",
                                                    "--enable_each_rank_log",
                                                    "logs",
                                                    "prog"});
  const auto& options = line.options;
  CHECK(options.hostfile == "file");
  CHECK(options.include == "a:0@b");
  CHECK(options.exclude.empty());
  CHECK(options.env == Words{"A=x,y z", "B"});
  CHECK(options.master_port == 1234);
  CHECK(options.grace_seconds == 0.5);
  CHECK(options.timeout_seconds == 7);
  CHECK(options.device_memory_bytes == 2LL << 30);
  CHECK(options.host_memory_bytes == 64LL << 30);
  CHECK(options.log_level == "error");
  CHECK(options.dry_run);
  CHECK(options.each_rank_log_directory == "logs");
  CHECK(line.command == Words{"prog"});
  const CommandLine bare = parse_command_line(Words{"prog"});
  CHECK_FALSE(bare.launch_options_given);
  CHECK_FALSE(bare.options.num_gpus);
  CHECK_FALSE(bare.options.master_port);
}

TEST_CASE("Options: mistakes are named", "[launcher]") {
  struct Row {
    const char* words;  ///< separated by |
    const char* message;
  };
  const auto row = GENERATE(values<Row>({
      {"--num_gpsu|2|p", "unknown launch option --num_gpsu; did you mean --num_gpus?"},
      {"--frobnicate|p", "unknown launch option --frobnicate"},
      {"--model_name_or_path|m|train",
       "--model_name_or_path is an option of train; write it after train: dstrain [launch "
       "options] train --model_name_or_path ..."},
      {"--num_gpus|2|--max-length=64", "--max_length is an option of train; write it after"},
      {"\u2014num_gpus|2|train",
       "\u2014num_gpus: begins with a typographic dash; write --num_gpus"},
      {"--num_gpus|2|\u2013-device|cpu|train",
       "\u2013-device: begins with a typographic dash; write --device"},
      {"-x|p", "unknown launch option -x"},
      {"--num_gpus", "--num_gpus: a value is missing"},
      {"--num_gpus|train|--bf16", "--num_gpus: a value is missing"},
      {"--num_gpus|0|p", "--num_gpus: must be 1..1024, got 0"},
      {"--num_gpus|2000|p", "--num_gpus: must be 1..1024"},
      {"--num_gpus|two|p", "--num_gpus: must be a number, got \"two\""},
      {"--timeout|abc|p", "--timeout: must be a number, got \"abc\""},
      {"--num_gpus=|p", "--num_gpus"},
      {"--save_pid=1|p", "--save_pid=1: takes no value"},
      {"--master_port|70000|p", "--master_port: must be 1..65535"},
      {"--master_addr|-oX|p", "--master_addr: \"-oX\" is not a host name"},
      {"--grace|-1|p", "--grace: must be"},
      {"--grace|1e9|p", "--grace: must be"},
      {"--timeout|0|p", "--timeout: must be"},
      {"--device_memory|many|p", "--device_memory: \"many\" is not a size"},
      {"--device_memory|0|p", "--device_memory: must be more than 0"},
      {"--host_memory|much|p", "--host_memory: \"much\" is not a size"},
      {"--host_memory|0|p", "--host_memory: must be more than 0"},
      {"--log_level|loud|p", "--log_level: \"loud\" is not one of debug, info"},
      {"--device|gpu|p", "--device: \"gpu\" is not one of auto, cuda, cpu; did you mean cuda?"},
      {"--launcher|locl|p", "is not one of auto, local, ssh, openmpi, mpich, slurm; did you mean"},
      {"--launcher|PDSH|p", "--launcher pdsh: not supported; did you mean ssh, which reaches"},
      {"--launcher|pdsh|--launcher_args|-l u|p",
       "--launcher pdsh: not supported; did you mean ssh"},
      {"--launcher|mvapich|p", "run the command on each node with --no_ssh --node_rank R"},
      {"--launcher|IMPI|p", "--launcher impi: not supported; use openmpi, mpich, slurm, or ssh"},
      {"--launcher|impi|--launcher_args|-genv A B|p", "--launcher impi: not supported"},
      {"--module|--no_python|p", "exclude each other"},
      {"--max_restarts|-1|p", "--max_restarts: must be 0.."},
      {"--no_ssh|p", "--node_rank is missing"},
      {"--node_rank|0|p", "--no_ssh is missing"},
      {"--no_ssh|--node_rank|0|--force_multi|p", "leave --force_multi out"},
      {"--launcher|local|--ssh_command|ssh|p", "leave --ssh_command out"},
      {"--launcher|local|--ssh-port|22|p", "leave --ssh_port out"},
      {"--launcher|slurm|--ssh-port|22|p", "--launcher slurm does not use dstrain's SSH"},
      {"--launcher|mpich|--force_multi|p", "--launcher mpich starts the ranks of all hosts"},
      {"--launcher|openmpi|--no_ssh|--node_rank|0|p", "leave --no_ssh out"},
      {"--launcher|local|--launcher_args|-v|p", "starts no program to pass them to"},
      {"--launcher|slurm|--launcher_args|'x|p", "--launcher_args: a quote is not closed"},
      {"--no_ssh|--node_rank|0|--copy_binary|p", "--no_ssh reaches no other host"},
      {"--ssh_command|ssh|--ssh_config|f|p", "leave --ssh_config out"},
      {"--ssh_command|ssh|--accept_new_host_keys|p", "the client has its own options"},
      {"--ssh_port|0|p", "must be 1..65535"},
      {"--ssh_command|ssh 'x|p", "a quote is not closed"},
      {"--ssh_command| |p", "names no program"},
      {"--min_elastic_nodes|0|p", "--min_elastic_nodes: must be 1.."},
      {"--min_elastic_nodes|x|p", "--min_elastic_nodes"},
      {"--max_elastic_nodes|-2|p", "--max_elastic_nodes: must be 1.."},
      {"--min_elastic_nodes|3|--max_elastic_nodes|2|p",
       "3: must not be more than --max_elastic_nodes 2"},
      {"--elastic_training|--no_ssh|--node_rank|0|p",
       "--elastic_training: cannot be combined with --no_ssh"},
      {"--max_elastic_nodes|2|--launcher|slurm|p", "ends the tasks of all hosts"},
  }));
  CAPTURE(row.words);
  CHECK_THAT(error_of(words_of(row.words)), Catch::Matchers::ContainsSubstring(row.message));
}

TEST_CASE("Options: options of other launchers are refused with ours", "[launcher]") {
  struct Row {
    const char* words;
    const char* ours;
  };
  const auto row = GENERATE(values<Row>({
      {"--nnodes|2|p", "--nnodes; did you mean --num_nodes?"},
      {"--nnodes=1:2|p", "--nnodes; did you mean --num_nodes?"},
      {"--nproc_per_node|2|p", "did you mean --num_gpus, the ranks of each node?"},
      {"--nproc_per_node|gpu|p", "leave it out: all slots of all hosts get a rank"},
      {"--nproc-per-node=2|p", "did you mean --num_gpus, the ranks of each node?"},
      {"--rdzv_endpoint|w0:29500|p", "did you mean --master_addr HOST --master_port PORT?"},
      {"--rdzv-backend=c10d|p", "leave it out: ranks meet in the store of rank 0 (--master_addr"},
      {"--rdzv_id|7|p", "leave it out: the launcher keeps jobs apart"},
      {"--rdzv_conf|timeout=9|p", "did you mean --timeout"},
      {"--standalone|p", "did you mean --launcher local?"},
      {"--num_processes|2|p", "did you mean --num_gpus, the ranks of each node?"},
      {"--num-machines|2|p", "did you mean --num_nodes?"},
      {"--machine_rank|1|p", "did you mean --no_ssh --node_rank?"},
      {"--main_process_ip|w0|p", "did you mean --master_addr?"},
      {"--main_process_port|1|p", "did you mean --master_port?"},
      {"--node-rank|1|p", "--no_ssh is missing"},  // ours too
      {"-m|p", "unknown launch option -m; did you mean --module?"},
      {"--log-dir|logs|p", "did you mean --enable_each_rank_log DIRECTORY?"},
      {"-r|3|p", "did you mean --enable_each_rank_log DIRECTORY?"},
      {"--tee=3|p", "--tee; leave it out: the output of all ranks is printed"},
      {"--monitor-interval|5|p", "leave it out: the end of a rank is noticed at once"},
      {"--gpu_ids|2,3|p", "did you mean --include localhost:2,3?"},
      {"--gpu_ids=5|p", "did you mean --include localhost:5?"},
      {"--gpu_ids|all|p", "leave it out: all slots of all hosts get a rank"},
      {"--gpus|1,2|p", "did you mean --include localhost:1,2?"},
      {"--gpus|2|p", "did you mean --num_gpus, the ranks of each node?"},
      {"--multi_gpu|p", "leave it out: all slots of all hosts get a rank"},
      {"--cpu|p", "did you mean --device cpu?"},
      {"--mixed-precision|bf16|p", "did you mean train --bf16?"},
      {"--deepspeed_config_file|f|p", "did you mean train --deepspeed FILE?"},
      {"--deepspeed_hostfile|f|p", "did you mean --hostfile?"},
      {"--deepspeed_inclusion_filter|w0|p", "did you mean --include?"},
      {"-n|4|p", "unknown launch option -n; did you mean --num_gpus, the ranks of each node?"},
      {"-n4|p", "unknown launch option -n; did you mean --num_gpus, the ranks of each node?"},
      {"-np|4|p", "unknown launch option -np; did you mean --num_gpus, the ranks of each node?"},
      {"--ntasks-per-node=4|p", "did you mean --num_gpus, the ranks of each node?"},
      {"-N|2|p", "did you mean --num_nodes, or --num_gpus, the ranks of each node?"},
      {"--host|w0,w1|p", "--host; did you mean --include HOST@HOST, of the hosts in --hostfile"},
      {"-host|w0,w1|p", "-host; did you mean --include HOST@HOST"},
      {"-hostfile|f|p", "unknown launch option -hostfile; did you mean --hostfile?"},
      {"-machinefile|f|p", "unknown launch option -machinefile; did you mean --hostfile?"},
      {"-x|A=1|p", "did you mean --env NAME=VALUE?"},
      {"-bind-to|core|p", "unknown launch option -bind-to; did you mean --bind_cores_to_rank?"},
      {"--autotuning|tune|p", "leave it out: dstrain plan tells what fits"},
      {"--enable_elastic_training|p", "did you mean --elastic_training?"},
      {"--world_info=e30|p", "leave it out: the launcher tells the ranks"},
      {"--comment|night|p", "did you mean --launcher_args \"--comment TEXT\"?"},
      {"--account|a|p", "did you mean --launcher_args \"--account NAME\"?"},
      {"--use_env|p", "did you mean --no_local_rank?"},
      {"--gpus|4|p", "did you mean --num_gpus, the ranks of each node?"},
      {"--rank|0|p", "did you mean --no_ssh --node_rank?"},
      {"--use-fsdp|p", "zero_optimization.stage 3 shards as FSDP does"},
      {"--zero3_init_flag|true|p", "leave it out: every rank makes or reads only its share"},
      {"--zero3_save_16bit_model|true|p", "leave it out: model.safetensors is always written"},
      {"--zero_stage|3|train", "--zero_stage; did you mean dstrain train --zero_stage 3?"},
      {"--gradient-clipping=1.0|train", "did you mean dstrain train --max_grad_norm 1.0?"},
      {"--gradient_accumulation_steps|4|p",
       "did you mean dstrain train --gradient_accumulation_steps 4?"},
      {"--offload_optimizer_device|cpu|p",
       "train --deepspeed FILE with {\"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": "
       "{\"device\": \"cpu\"}}}?"},
      {"--offload_param_device|cpu|p",
       "{\"stage\": 3, \"offload_param\": {\"device\": \"cpu\"}}}?"},
      {"--offload_param_device|none|p", "leave it out: nothing is offloaded"},
      {"--mixed_precision|fp16|p", "did you mean train --fp16?"},
      {"--mixed_precision|no|p", "leave it out: training is in fp32"},
      {"--config_file|acc.yaml|p",
       "YAML is not read; type its options: num_processes is --num_gpus"},
      {"--deepspeed|f|p", "did you mean train --deepspeed FILE?"},
      {"--jobid|7|p", "leave it out: dstrain uses the allocation that it runs in"},
      {"--gres=gpu:8|p", "did you mean --launcher_args \"OPTION\", for srun?"},
      {"--kill-on-bad-exit=1|p", "leave it out: the first rank that fails ends the others"},
      {"--mca|btl|tcp|p", "did you mean --launcher_args \"OPTION\", for mpirun?"},
  }));
  CAPTURE(row.words);
  CHECK_THAT(error_of(words_of(row.words)), Catch::Matchers::ContainsSubstring(row.ours));
}

TEST_CASE("Options: every numeric option refuses other text", "[launcher]") {
  const std::string option = GENERATE(
      values<std::string>({"--num_nodes", "--num_gpus", "--num_accelerators", "--master_port",
                           "--ssh_port", "--node_rank", "--timeout", "--grace", "--max_restarts",
                           "--min_elastic_nodes", "--max_elastic_nodes"}));
  const std::string word = GENERATE("", " 5", "5 ", "5x", "0x5", "+5", "nan", "inf", "-inf", "5,5");
  CAPTURE(option, word);
  const std::string name = option == "--num_accelerators" ? "--num_gpus" : option;
  CHECK(error_of({option, word, "p"}) == name + ": must be a number, got \"" + word + "\"");
  CHECK(error_of({option + "=" + word, "p"}) == error_of({option, word, "p"}));
}

TEST_CASE("Options: an empty text is refused except where DeepSpeed accepts it", "[launcher]") {
  const auto name = GENERATE(
      values<std::string>({"--launcher", "--ssh_config", "--ssh_command", "--device",
                           "--device_memory", "--host_memory", "--bind_core_list", "--venv_script",
                           "--env", "--enable_each_rank_log", "--log_level"}));
  CAPTURE(name);
  CHECK(error_of({name, "", "p"}) == name + ": must not be empty");
  CHECK(error_of({name + "=", "p"}) == name + ": must not be empty");
  const auto free =
      GENERATE(values<std::string>({"--include", "--exclude", "--launcher_args", "--master_addr"}));
  CHECK(parse_command_line(Words{free, "", "p"}).command == Words{"p"});
}

TEST_CASE("Options: an empty hostfile counts as none and is reported", "[launcher]") {
  const launcher::LaunchOptions options = parse_command_line(Words{"--hostfile=", "p"}).options;
  CHECK_FALSE(options.hostfile);
  CHECK(options.warnings == Words{"--hostfile is empty and has no effect"});
  CHECK(parse_command_line(Words{"-H", "f", "p"}).options.warnings.empty());
}

TEST_CASE("Options: launchers are spelled in any case as in DeepSpeed", "[launcher]") {
  CHECK(parse_command_line(Words{"--launcher", "OpenMPI", "p"}).options.launcher == "openmpi");
  const auto slurm = parse_command_line(Words{"--launcher=SLURM", "--launcher_args=-v", "p"});
  CHECK(slurm.options.launcher_args == Words{"-v"});
}

TEST_CASE("Options: numbers are decimal even with a leading zero", "[launcher]") {
  CHECK(parse_command_line(Words{"--num_gpus", "010", "p"}).options.num_gpus == 10);  // not octal
  CHECK_THAT(error_of({"--timeout", "-5", "p"}),
             Catch::Matchers::ContainsSubstring("--timeout: must be 1.."));
  CHECK_THAT(error_of({"--num_gpus", "-2", "p"}),
             Catch::Matchers::ContainsSubstring("--num_gpus: must be 1.."));
}

TEST_CASE("Options: any of three options makes a job elastic", "[launcher]") {
  struct Row {
    const char* words;
    int min;
    int max;
    int restarts;
  };
  const auto row = GENERATE(values<Row>({
      {"--elastic_training|p", 1, 0, 100},
      {"--min_elastic_nodes|2|p", 2, 0, 100},
      {"--max_elastic_nodes|3|p", 1, 3, 100},
      {"--min_elastic_nodes|2|--max_elastic_nodes|2|--max_restarts|5|p", 2, 2, 5},
      {"--elastic_training|--min_elastic_nodes|-1|--max_elastic_nodes|-1|p", 1, 0, 100},
  }));
  CAPTURE(row.words);
  const LaunchOptions options = parse_command_line(words_of(row.words)).options;
  REQUIRE(options.elastic.has_value());
  CHECK(options.elastic->min == row.min);
  CHECK(options.elastic->max == row.max);
  CHECK(options.max_restarts == row.restarts);
  const LaunchOptions plain = parse_command_line(words_of("--min_elastic_nodes|-1|p")).options;
  CHECK_FALSE(plain.elastic.has_value());
  CHECK(plain.max_restarts == 0);
}

TEST_CASE("Options: a client program is split into words", "[launcher]") {
  struct Row {
    const char* text;
    Words words;
  };
  const auto row = GENERATE(values<Row>({
      {"ssh", {"ssh"}},
      {"  ssh  -p 22\t", {"ssh", "-p", "22"}},
      {"'a b' \"c 'd\"", {"a b", "c 'd"}},
      {"a\\ b '\\' \"\\\"\"", {"a b", "\\", "\""}},
      {"''", {""}},
      {"$x `y`", {"$x", "`y`"}},
  }));
  CAPTURE(row.text);
  const auto& options = parse_command_line(Words{"--ssh_command", row.text, "p"}).options;
  CHECK(options.ssh_command == row.words);
}
